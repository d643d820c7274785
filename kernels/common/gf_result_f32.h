/* The rows of a float result: bias and clamp, which may be one for each channel, and where wanted a second tensor added. */
#ifndef GF_RESULT_F32_H
#define GF_RESULT_F32_H
#include "gf_macs.h"

/* How sums become the result, from channel 0 on. `low`, `high` NULL: all channels are clamped to lo and hi. `addend` NULL: nothing is added.
   Rows of y and of the addend lie their `row` elements apart; lines of y, q rows each, lie `line` apart (0: as q rows do). */
typedef struct {
  float *y;
  ptrdiff_t row, line;
  int32_t q;
  const float *bias;
  float lo, hi;
  const float *low, *high;
  const float *addend;
  ptrdiff_t addend_row;
  float sum_lo, sum_hi;
} gf_result_f32;

/* Row `at`, `n` channels from `channel`. y may lie where the addend lies. */
static inline void gf_result_f32_row(const gf_result_f32 *r, int32_t at, int32_t channel, const float *sums, int32_t n) {
  float *y = r->y + gf_row_of_lines(at, r->row, r->line, r->q) + channel;
  const float *bias = r->bias + channel, lo = r->lo, hi = r->hi, sum_lo = r->sum_lo, sum_hi = r->sum_hi;
  if (!r->addend && !r->low && !r->high) {
    gf_store_f32(y, sums, bias, n, lo, hi);
    return;
  }
  const float *addend = r->addend ? r->addend + at * r->addend_row + channel : NULL;
  const float *low = r->low ? r->low + channel : NULL, *high = r->high ? r->high + channel : NULL;
  for (int32_t i = 0; i < n; i++) {
    float v = sums[i] + bias[i], from = low ? low[i] : lo, to = high ? high[i] : hi;
    v = v < from ? from : v;
    v = v > to ? to : v;
    if (addend) {
      v += addend[i];
      v = v < sum_lo ? sum_lo : v;
      v = v > sum_hi ? sum_hi : v;
    }
    y[i] = v;
  }
}
#endif
