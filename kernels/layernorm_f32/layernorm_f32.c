/* Layer normalisation of the last axis, in two passes for the variance. */
#include "gf_layernorm_f32_args.h"
#include "gf_rows.h"

static void line(const gf_layernorm_f32_args *a, const float *x, float *y) {
  const int32_t n = a->d;
  float sum = 0.0f, squares = 0.0f;
  for (int32_t j = 0; j < n; j++) sum += x[j];
  const float mean = sum / (float)n;
  for (int32_t j = 0; j < n; j++) squares += (x[j] - mean) * (x[j] - mean);
  const float factor = 1.0f / sqrtf(squares / (float)n + a->epsilon);
  for (int32_t j = 0; j < n; j++) {
    const float v = (x[j] - mean) * factor * (a->gamma ? a->gamma[j] : 1.0f);
    y[j] = a->beta ? v + a->beta[j] : v;
  }
}

void gf_layernorm_f32(const void *args) {
  const gf_layernorm_f32_args *a = args;
  const int32_t lines[4] = {a->b[0], a->b[1], a->b[2], 1};
  gf_rows r = gf_rows_share(lines);
  while (gf_rows_next(&r)) line(a, a->x + gf_row_offset(&r, a->x_s), a->y + gf_row_offset(&r, a->y_s));
}
