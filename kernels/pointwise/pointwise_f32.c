/* A 1x1 convolution is a linear layer over pixels; weights [k / 16][c][16]. A stride is taken by the copy: the tile of x has the output's pixels. */
#include "gf_pointwise_f32_args.h"
#include "gf_dense_f32.h"

void gf_pointwise_f32(const void *args) {
  const gf_pointwise_f32_args *a = args;
  gf_dense_f32 d = {
      .x = a->x, .w = a->weight, .run = a->c, .lanes = a->k, .x_row = a->x_pitch,
      .y = {.y = a->y, .row = a->y_pitch, .line = a->y_line, .q = a->q, .bias = a->bias, .lo = a->lo, .hi = a->hi, .low = a->low, .high = a->high,
            .addend = a->addend, .addend_row = a->addend_pitch, .sum_lo = a->sum_lo, .sum_hi = a->sum_hi},
      .last = 1,
  };
  gf_dense_f32_share(&d, a->n * a->p * a->q);
}
