/* A 1x1 convolution is a linear layer over pixels; weights [k / 16][c][16]. A stride is taken by the copy: the tile of x has the output's pixels. */
#include "gf_pointwise_f32_args.h"
#include "gf_dense_f32.h"

void gf_pointwise_f32(const void *args) {
  const gf_pointwise_f32_args *a = args;
  gf_dense_f32 d = {a->x, a->weight, a->bias, a->y, a->c, a->k, a->x_pitch, a->y_pitch, a->lo, a->hi, NULL, 1, 1};
  gf_range lanes = {0, a->k};
  gf_dense_f32_box(&d, gf_share_step(a->n * a->p * a->q, GF_PIXELS), lanes);
}
