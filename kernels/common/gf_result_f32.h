/* The rows of a float result: bias and clamp, and where wanted a second tensor added. */
#ifndef GF_RESULT_F32_H
#define GF_RESULT_F32_H
#include "gf_macs.h"

/* How sums become the result, from channel 0 on. `addend` NULL: nothing is added. Rows of y and of the addend lie their `row` elements apart. */
typedef struct {
  float *y;
  ptrdiff_t row;
  const float *bias;
  float lo, hi;
  const float *addend;
  ptrdiff_t addend_row;
  float sum_lo, sum_hi;
} gf_result_f32;

/* Row `at`, `n` channels from `channel`. y may lie where the addend lies. */
static inline void gf_result_f32_row(const gf_result_f32 *r, int32_t at, int32_t channel, const float *sums, int32_t n) {
  float *y = r->y + at * r->row + channel;
  const float *bias = r->bias + channel, lo = r->lo, hi = r->hi, sum_lo = r->sum_lo, sum_hi = r->sum_hi;
  if (!r->addend) {
    gf_store_f32(y, sums, bias, n, lo, hi);
    return;
  }
  const float *addend = r->addend + at * r->addend_row + channel;
  for (int32_t i = 0; i < n; i++) {
    float v = sums[i] + bias[i];
    v = v < lo ? lo : v;
    v = (v > hi ? hi : v) + addend[i];
    v = v < sum_lo ? sum_lo : v;
    y[i] = v > sum_hi ? sum_hi : v;
  }
}
#endif
