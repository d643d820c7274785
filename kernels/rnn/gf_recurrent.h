/* What the recurrent kernels share. State: h[half][row][unit], step k reads half k % 2 and writes the other. */
#ifndef GF_RECURRENT_H
#define GF_RECURRENT_H
#include "gf_macs.h"
#include "gf_math.h"

/* sums[j] += sum over i < run of h[i] * r[i * row + j], j < n. */
static inline void gf_recur(float *sums, const float *h, const float *r, int32_t row, int32_t run, int32_t n) {
  int32_t j = 0;
  for (; j + GF_BLOCK <= n; j += GF_BLOCK) {
    gf_vf32 acc[GF_BLOCK_VECTORS] = {{0}};
    gf_macs_f32(acc, 1, 1, &h, r + j, GF_BLOCK, row, run);
    const float *block = (const float *)acc;
    for (int i = 0; i < GF_BLOCK; i++) sums[j + i] += block[i];
  }
  for (; j < n; j++) {
    float sum = 0;
    for (int32_t i = 0; i < run; i++) sum += h[i] * r[(ptrdiff_t)i * row + j];
    sums[j] += sum;
  }
}

/* Where a step's inputs lie within the tile of `steps`: from the end in reverse. */
static inline int32_t gf_place(int32_t step, int32_t steps, int32_t reverse) { return reverse ? steps - 1 - step : step; }

/* The state of `row` that step number k reads: h0 (NULL: zeros) at k = 0. */
static inline const float *gf_state_before(const float *h, const float *h0, int32_t k, int32_t rows, int32_t row, int32_t units) {
  if (k == 0) return h0 ? h0 + (ptrdiff_t)row * units : NULL;
  return h + ((ptrdiff_t)(k & 1) * rows + row) * units;
}

/* The state of `row` that step number k makes. */
static inline float *gf_state_after(float *h, int32_t k, int32_t rows, int32_t row, int32_t units) {
  return h + ((ptrdiff_t)(~k & 1) * rows + row) * units;
}
#endif
