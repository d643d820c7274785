/* A 1x1 convolution is a linear layer over pixels; weights [k / 16][c][16]. A stride is taken by the copy: the tile of x has the output's pixels. */
#include "gf_pointwise_i8_args.h"
#include "gf_dense_i8.h"

void gf_pointwise_i8(const void *args) {
  const gf_pointwise_i8_args *a = args;
  gf_dense_i8 d = {a->x, a->weight, a->y, a->c, a->k, a->x_pitch, a->y_pitch, a->x_zero, {a->bias, a->mul, a->shift, a->y_zero, a->lo, a->hi}, NULL, 1, 1};
  gf_range lanes = {0, a->k};
  gf_dense_i8_box(&d, gf_share_step(a->n * a->p * a->q, GF_PIXELS), lanes);
}
