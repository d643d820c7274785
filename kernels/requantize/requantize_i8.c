/* From one quantisation to another, clamped. */
#include "gf_requantize_i8_args.h"
#include "gf_rows.h"

static inline void row(const gf_requantize_i8_args *t, const int8_t *x, int32_t xs, int8_t *y, int32_t ys, int32_t n) {
  const int32_t mul = t->mul, from = t->x_zero, to = t->y_zero, lo = t->lo, hi = t->hi;
  const int shift = t->shift;
  GF_INDEPENDENT
  for (int32_t j = 0; j < n; j++) y[j * ys] = gf_saturate(gf_requantise(x[j * xs] - from, mul, shift), to, lo, hi);
}

void gf_requantize_i8(const void *args) {
  const gf_requantize_i8_args *a = args;
  const int32_t xs = a->x_s[3], ys = a->y_s[3];
  gf_rows r = gf_rows_share(a->i);
  while (gf_rows_next(&r)) {
    const int8_t *x = a->x + gf_row_offset(&r, a->x_s) + r.begin * xs;
    int8_t *y = a->y + gf_row_offset(&r, a->y_s) + r.begin * ys;
    if (xs == 1 && ys == 1)
      row(a, x, 1, y, 1, r.end - r.begin);
    else
      row(a, x, xs, y, ys, r.end - r.begin);
  }
}
