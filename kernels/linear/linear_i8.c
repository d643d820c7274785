/* Weights [j / 16][k][16]. */
#include "gf_linear_i8_args.h"
#include "gf_dense_i8.h"

void gf_linear_i8(const void *args) {
  const gf_linear_i8_args *a = args;
  gf_dense_i8 d = {
      .x = a->x, .w = a->weight, .run = a->k, .lanes = a->j, .x_row = a->x_pitch, .x_zero = a->x_zero,
      .y = {.y = a->y, .row = a->y_pitch, .by = {a->bias, a->mul, a->shift, a->y_zero, a->lo, a->hi}},
      .last = 1,
  };
  gf_dense_i8_share(&d, a->m);
}
