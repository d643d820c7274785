/* Inputs split over calls, partial sums in L1: [m][j]; weights [j / 16][k][16]. */
#include "gf_linear_i8_acc_args.h"
#include "gf_dense_i8.h"

void gf_linear_i8_acc(const void *args) {
  const gf_linear_i8_acc_args *a = args;
  gf_dense_i8 d = {
      .x = a->x, .w = a->weight, .run = a->k, .lanes = a->j, .x_row = a->x_pitch, .x_zero = a->x_zero,
      .y = {.y = a->y, .row = a->y_pitch, .by = {a->bias, a->mul, a->shift, a->y_zero, a->lo, a->hi}},
      .sums = a->acc, .first = a->first, .last = a->last,
  };
  gf_dense_i8_share(&d, a->m);
}
