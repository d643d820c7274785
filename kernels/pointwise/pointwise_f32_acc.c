/* Input channels split over calls, partial sums in L1: [n][p][q][k]; weights [k / 16][c][16]. */
#include "gf_pointwise_f32_acc_args.h"
#include "gf_dense_f32.h"

void gf_pointwise_f32_acc(const void *args) {
  const gf_pointwise_f32_acc_args *a = args;
  gf_dense_f32 d = {
      .x = a->x, .w = a->weight, .run = a->c, .lanes = a->k, .x_row = a->x_pitch,
      .y = {.y = a->y, .row = a->y_pitch, .line = a->y_line, .q = a->q, .bias = a->bias, .lo = a->lo, .hi = a->hi, .low = a->low, .high = a->high,
            .addend = a->addend, .addend_row = a->addend_pitch, .sum_lo = a->sum_lo, .sum_hi = a->sum_hi},
      .sums = a->acc, .first = a->first, .last = a->last,
  };
  gf_dense_f32_share(&d, a->n * a->p * a->q);
}
