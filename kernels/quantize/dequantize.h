/* gf_integer to float32: (x - zero) * scale. Included after typedefs of gf_integer and gf_args. */
#include "gf_rows.h"

static inline void row(const gf_integer *x, int32_t xs, const float *scale, const gf_integer *zero, int32_t cs, float *y, int32_t ys, int32_t n) {
  for (int32_t j = 0; j < n; j++) y[j * ys] = (float)(x[j * xs] - zero[j * cs]) * scale[j * cs];
}

static inline void dequantize(const gf_args *a) {
  const int32_t xs = a->x_s[3], cs = a->scale_s[3], ys = a->y_s[3];
  gf_rows r = gf_rows_share(a->i);
  while (gf_rows_next(&r)) {
    const gf_integer *x = a->x + gf_row_offset(&r, a->x_s) + r.begin * xs;
    const float *scale = a->scale + gf_row_offset(&r, a->scale_s) + r.begin * cs;
    const gf_integer *zero = a->zero + gf_row_offset(&r, a->zero_s) + r.begin * cs;
    float *y = a->y + gf_row_offset(&r, a->y_s) + r.begin * ys;
    const int32_t n = r.end - r.begin;
    if (xs == 1 && cs == 0 && ys == 1)
      row(x, 1, scale, zero, 0, y, 1, n);
    else
      row(x, xs, scale, zero, cs, y, ys, n);
  }
}
