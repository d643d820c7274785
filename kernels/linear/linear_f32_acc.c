/* Inputs split over calls, partial sums in L1: [m][j]; weights [j / 16][k][16]. */
#include "gf_linear_f32_acc_args.h"
#include "gf_dense_f32.h"

void gf_linear_f32_acc(const void *args) {
  const gf_linear_f32_acc_args *a = args;
  gf_dense_f32 d = {
      .x = a->x, .w = a->weight, .run = a->k, .lanes = a->j, .x_row = a->x_pitch,
      .y = {.y = a->y, .row = a->y_pitch, .bias = a->bias, .lo = a->lo, .hi = a->hi},
      .sums = a->acc, .first = a->first, .last = a->last,
  };
  gf_dense_f32_share(&d, a->m);
}
