/* Logarithm of softmax over the last axis. */
#include "gf_log_softmax_f32_args.h"
#include "gf_math.h"
#include "gf_rows.h"

static void line(const gf_log_softmax_f32_args *a, const float *x, float *y) {
  const float greatest = gf_greatest(x, a->d);
  float sum = 0.0f;
  for (int32_t j = 0; j < a->d; j++) sum += gf_expf(x[j] - greatest);
  const float log_sum = logf(sum);
  for (int32_t j = 0; j < a->d; j++) y[j] = (x[j] - greatest) - log_sum;
}

void gf_log_softmax_f32(const void *args) {
  const gf_log_softmax_f32_args *a = args;
  const int32_t lines[4] = {a->b[0], a->b[1], a->b[2], 1};
  gf_rows r = gf_rows_share(lines);
  while (gf_rows_next(&r)) line(a, a->x + gf_row_offset(&r, a->x_s), a->y + gf_row_offset(&r, a->y_s));
}
