/* (x - x_zero) * mul + bias in 64 bits, one rounding, zero point, clamp; the constants broadcast alike. */
#include "gf_scale_shift_i8_args.h"
#include "gf_rows.h"

void gf_scale_shift_i8(const void *args) {
  const gf_scale_shift_i8_args *a = args;
  const int32_t xs = a->x_s[3], cs = a->mul_s[3], ys = a->y_s[3];
  const int32_t from = a->x_zero, to = a->y_zero, lo = a->lo, hi = a->hi;
  gf_rows r = gf_rows_share(a->i);
  while (gf_rows_next(&r)) {
    const int8_t *x = a->x + gf_row_offset(&r, a->x_s);
    const int32_t *mul = a->mul + gf_row_offset(&r, a->mul_s);
    const int64_t *bias = a->bias + gf_row_offset(&r, a->bias_s);
    const uint8_t *shift = a->shift + gf_row_offset(&r, a->shift_s);
    int8_t *y = a->y + gf_row_offset(&r, a->y_s);
    GF_INDEPENDENT
    for (int32_t j = r.begin; j < r.end; j++) {
      const int32_t c = j * cs;
      const int64_t sum = (int64_t)(x[j * xs] - from) * mul[c] + bias[c] + ((int64_t)1 << (shift[c] - 1));
      y[j * ys] = gf_saturate(sum >> shift[c], to, lo, hi);
    }
  }
}
