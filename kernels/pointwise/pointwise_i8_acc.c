/* Input channels split over calls, partial sums in L1: [n][p][q][k]; weights [k / 16][c][16]. */
#include "gf_pointwise_i8_acc_args.h"
#include "gf_dense_i8.h"

void gf_pointwise_i8_acc(const void *args) {
  const gf_pointwise_i8_acc_args *a = args;
  gf_dense_i8 d = {
      .x = a->x, .w = a->weight, .run = a->c, .lanes = a->k, .x_row = a->x_pitch, .x_zero = a->x_zero,
      .y = {.y = a->y, .row = a->y_pitch, .line = a->y_line, .q = a->q, .by = {a->bias, a->mul, a->shift, a->y_zero, a->lo, a->hi},
            .add = {a->addend, a->addend_pitch, a->addend_zero, a->addend_mul, a->sum_mul, a->sum_shift, a->sum_zero, a->sum_lo, a->sum_hi}},
      .sums = a->acc, .first = a->first, .last = a->last,
  };
  gf_dense_i8_share(&d, a->n * a->p * a->q);
}
