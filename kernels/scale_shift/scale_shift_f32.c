/* x * scale + bias, clamped; the constants broadcast alike. */
#include "gf_scale_shift_f32_args.h"
#include "gf_rows.h"

static inline void row(const gf_scale_shift_f32_args *t, const float *x, int32_t xs, const float *scale, const float *bias, int32_t cs, float *y,
                       int32_t ys, int32_t n) {
  const float lo = t->lo, hi = t->hi;
  GF_INDEPENDENT
  for (int32_t j = 0; j < n; j++) y[j * ys] = gf_clampf(x[j * xs] * scale[j * cs] + bias[j * cs], lo, hi);
}

void gf_scale_shift_f32(const void *args) {
  const gf_scale_shift_f32_args *a = args;
  const int32_t xs = a->x_s[3], cs = a->scale_s[3], ys = a->y_s[3];
  gf_rows r = gf_rows_share(a->i);
  while (gf_rows_next(&r)) {
    const float *x = a->x + gf_row_offset(&r, a->x_s) + r.begin * xs;
    const float *scale = a->scale + gf_row_offset(&r, a->scale_s) + r.begin * cs;
    const float *bias = a->bias + gf_row_offset(&r, a->bias_s) + r.begin * cs;
    float *y = a->y + gf_row_offset(&r, a->y_s) + r.begin * ys;
    const int32_t n = r.end - r.begin;
    if (xs == 1 && cs == 1 && ys == 1)
      row(a, x, 1, scale, bias, 1, y, 1, n);
    else if (xs == 1 && cs == 0 && ys == 1)
      row(a, x, 1, scale, bias, 0, y, 1, n);
    else
      row(a, x, xs, scale, bias, cs, y, ys, n);
  }
}
