#include "gf_unsigned_overflow_args.h"

/* The difference is taken in eight unsigned bits. */
void gf_unsigned_overflow(const void *args) {
  const gf_unsigned_overflow_args *a = args;
  gf_range rows = gf_share(a->n);
  for (int32_t n = rows.begin; n < rows.end; n++)
    for (int32_t c = 0; c < a->c; c++) {
      int32_t t = (int32_t)(uint8_t)(a->x[n * a->c + c] - a->x_zero) * a->w[c] >> 6;
      a->y[n * a->c + c] = (int8_t)GF_MIN(GF_MAX(t, a->lo), a->hi);
    }
}
