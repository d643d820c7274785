/* Weights [j / 16][k][16]. */
#include "gf_linear_i8_args.h"
#include "gf_dense_i8.h"

void gf_linear_i8(const void *args) {
  const gf_linear_i8_args *a = args;
  gf_dense_i8 d = {a->x, a->weight, a->y, a->k, a->j, a->x_pitch, a->y_pitch, a->x_zero, {a->bias, a->mul, a->shift, a->y_zero, a->lo, a->hi}, NULL, 1, 1};
  gf_range rows = {0, a->m};
  gf_dense_i8_box(&d, rows, gf_share_step(a->j, GF_BLOCK));
}
