/* Leaky ReLU with a slope operand. */
#include "gf_prelu_f32_args.h"
#include "gf_rows.h"

static inline void row(const float *x, int32_t xs, const float *slope, int32_t ss, float *y, int32_t ys, int32_t n) {
  GF_INDEPENDENT
  for (int32_t j = 0; j < n; j++) {
    const float v = x[j * xs], scaled = v * slope[j * ss];
    y[j * ys] = v < 0.0f ? scaled : v;
  }
}

void gf_prelu_f32(const void *args) {
  const gf_prelu_f32_args *a = args;
  const int32_t xs = a->x_s[3], ss = a->slope_s[3], ys = a->y_s[3];
  gf_rows r = gf_rows_share(a->i);
  while (gf_rows_next(&r)) {
    const float *x = a->x + gf_row_offset(&r, a->x_s) + r.begin * xs;
    const float *slope = a->slope + gf_row_offset(&r, a->slope_s) + r.begin * ss;
    float *y = a->y + gf_row_offset(&r, a->y_s) + r.begin * ys;
    const int32_t n = r.end - r.begin;
    if (xs == 1 && ss == 1 && ys == 1)
      row(x, 1, slope, 1, y, 1, n);
    else if (xs == 1 && ss == 0 && ys == 1)
      row(x, 1, slope, 0, y, 1, n);
    else
      row(x, xs, slope, ss, y, ys, n);
  }
}
