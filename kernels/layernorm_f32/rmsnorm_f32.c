/* Root-mean-square normalisation of the last axis. */
#include "gf_rmsnorm_f32_args.h"
#include "gf_math.h"
#include "gf_rows.h"

static void line(const gf_rmsnorm_f32_args *a, const float *x, float *y) {
  const float factor = 1.0f / sqrtf(gf_sum_of_squares(x, a->d, 0.0f) / (float)a->d + a->epsilon);
  const float *gamma = a->gamma;
  GF_INDEPENDENT
  for (int32_t j = 0; j < a->d; j++) y[j] = x[j] * factor;
  if (gamma)
    for (int32_t j = 0; j < a->d; j++) y[j] *= gamma[j];
}

void gf_rmsnorm_f32(const void *args) {
  const gf_rmsnorm_f32_args *a = args;
  const int32_t lines[4] = {a->b[0], a->b[1], a->b[2], 1};
  gf_rows r = gf_rows_share(lines);
  while (gf_rows_next(&r)) line(a, a->x + gf_row_offset(&r, a->x_s), a->y + gf_row_offset(&r, a->y_s));
}
