/* Quantised sum: both operands scaled in 64 bits, one rounding, zero point, clamp. */
#include "gf_add_i8_args.h"
#include "gf_rows.h"

static inline void row(const gf_add_i8_args *t, const int8_t *a, int32_t as, const int8_t *b, int32_t bs, int8_t *y, int32_t ys, int32_t n) {
  const int32_t ma = t->ma, mb = t->mb, az = t->a_zero, bz = t->b_zero, zero = t->y_zero, lo = t->lo, hi = t->hi;
  const int shift = t->shift;
  GF_INDEPENDENT
  for (int32_t j = 0; j < n; j++) {
    int64_t v = gf_add_scaled(a[j * as] - az, ma, b[j * bs] - bz, mb, shift) + zero;
    y[j * ys] = (int8_t)GF_CLAMP(v, lo, hi);
  }
}

void gf_add_i8(const void *args) {
  const gf_add_i8_args *a = args;
  const int32_t as = a->a_s[3], bs = a->b_s[3], ys = a->y_s[3];
  gf_rows r = gf_rows_share(a->i);
  while (gf_rows_next(&r)) {
    const int8_t *p = a->a + gf_row_offset(&r, a->a_s) + r.begin * as;
    const int8_t *q = a->b + gf_row_offset(&r, a->b_s) + r.begin * bs;
    int8_t *y = a->y + gf_row_offset(&r, a->y_s) + r.begin * ys;
    const int32_t n = r.end - r.begin;
    if (as == 1 && bs == 1 && ys == 1)
      row(a, p, 1, q, 1, y, 1, n);
    else
      row(a, p, as, q, bs, y, ys, n);
  }
}
