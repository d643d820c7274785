#include "gf_signed_overflow_args.h"

/* The product leaves int32 on its way. */
void gf_signed_overflow(const void *args) {
  const gf_signed_overflow_args *a = args;
  gf_range rows = gf_share(a->n);
  for (int32_t n = rows.begin; n < rows.end; n++)
    for (int32_t c = 0; c < a->c; c++) {
      int32_t t = ((int32_t)a->x[n * a->c + c] - a->x_zero) * a->w[c];
      t = t * (1 << 24) / (1 << 24) >> 6;
      a->y[n * a->c + c] = (int8_t)GF_MIN(GF_MAX(t, a->lo), a->hi);
    }
}
