/* float32 to gf_integer: saturate(rint(x / scale) + zero), halves to even. Included after typedefs of gf_integer and gf_args. */
#include "gf_rows.h"

static inline void row(const gf_args *t, const float *x, int32_t xs, const float *scale, const gf_integer *zero, int32_t cs, gf_integer *y,
                       int32_t ys, int32_t n) {
  const float lo = t->lo, hi = t->hi;
  for (int32_t j = 0; j < n; j++) {
    const float z = zero[j * cs];
    float v = x[j * xs] / scale[j * cs];
    v = v > lo - z ? v : lo - z; /* NaN gives lo */
    v = v < hi - z ? v : hi - z;
    v = (v + 12582912.0f) - 12582912.0f; /* 1.5 * 2^23: rounds |v| < 2^22 to an integer, halves to even */
    y[j * ys] = (gf_integer)(int32_t)(v + z);
  }
}

static inline void quantize(const gf_args *a) {
  const int32_t k = gf_row_axis(a->i, a->x_s);
  const gf_axes i = gf_axes_last(a->i, k), x_s = gf_axes_last(a->x_s, k), c_s = gf_axes_last(a->scale_s, k), y_s = gf_axes_last(a->y_s, k);
  const int32_t xs = x_s.of[3], cs = c_s.of[3], ys = y_s.of[3];
  gf_rows r = gf_rows_share(i.of);
  while (gf_rows_next(&r)) {
    const float *x = a->x + gf_row_offset(&r, x_s.of) + r.begin * xs;
    const float *scale = a->scale + gf_row_offset(&r, c_s.of) + r.begin * cs;
    const gf_integer *zero = a->zero + gf_row_offset(&r, c_s.of) + r.begin * cs;
    gf_integer *y = a->y + gf_row_offset(&r, y_s.of) + r.begin * ys;
    const int32_t n = r.end - r.begin;
    if (xs == 1 && cs == 0 && ys == 1)
      row(a, x, 1, scale, zero, 0, y, 1, n);
    else
      row(a, x, xs, scale, zero, cs, y, ys, n);
  }
}
