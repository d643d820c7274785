/* gf_integer to float32: (x - zero) * scale. Included after typedefs of gf_integer and gf_args. */
#include "gf_rows.h"

static inline void row(const gf_integer *x, int32_t xs, const float *scale, const gf_integer *zero, int32_t cs, float *y, int32_t ys, int32_t n) {
  for (int32_t j = 0; j < n; j++) y[j * ys] = (float)(x[j * xs] - zero[j * cs]) * scale[j * cs];
}

static inline void dequantize(const gf_args *a) {
  const int32_t k = gf_row_axis(a->i, a->x_s);
  const gf_axes i = gf_axes_last(a->i, k), x_s = gf_axes_last(a->x_s, k), c_s = gf_axes_last(a->scale_s, k), y_s = gf_axes_last(a->y_s, k);
  const int32_t xs = x_s.of[3], cs = c_s.of[3], ys = y_s.of[3];
  gf_rows r = gf_rows_share(i.of);
  while (gf_rows_next(&r)) {
    const gf_integer *x = a->x + gf_row_offset(&r, x_s.of) + r.begin * xs;
    const float *scale = a->scale + gf_row_offset(&r, c_s.of) + r.begin * cs;
    const gf_integer *zero = a->zero + gf_row_offset(&r, c_s.of) + r.begin * cs;
    float *y = a->y + gf_row_offset(&r, y_s.of) + r.begin * ys;
    const int32_t n = r.end - r.begin;
    if (xs == 1 && cs == 0 && ys == 1)
      row(x, 1, scale, zero, 0, y, 1, n);
    else
      row(x, xs, scale, zero, cs, y, ys, n);
  }
}
