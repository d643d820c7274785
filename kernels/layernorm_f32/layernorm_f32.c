/* Layer normalisation of the last axis, in two passes for the variance. */
#include "gf_layernorm_f32_args.h"
#include "gf_math.h"
#include "gf_rows.h"

static void line(const gf_layernorm_f32_args *a, const float *x, float *y) {
  const int32_t n = a->d;
  const float mean = gf_sum(x, n) / (float)n, factor = 1.0f / sqrtf(gf_sum_of_squares(x, n, mean) / (float)n + a->epsilon);
  const float *gamma = a->gamma, *beta = a->beta;
  GF_INDEPENDENT
  for (int32_t j = 0; j < n; j++) y[j] = (x[j] - mean) * factor;
  if (gamma)
    for (int32_t j = 0; j < n; j++) y[j] *= gamma[j];
  if (beta)
    for (int32_t j = 0; j < n; j++) y[j] += beta[j];
}

void gf_layernorm_f32(const void *args) {
  const gf_layernorm_f32_args *a = args;
  const int32_t lines[4] = {a->b[0], a->b[1], a->b[2], 1};
  gf_rows r = gf_rows_share(lines);
  while (gf_rows_next(&r)) line(a, a->x + gf_row_offset(&r, a->x_s), a->y + gf_row_offset(&r, a->y_s));
}
