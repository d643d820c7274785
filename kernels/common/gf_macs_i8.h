/* The inner loop of every dense int8 kernel: a few pixels by a few blocks of 16 output channels, int32 accumulators in registers.
   Weights are packed [run][16] per block; each pixel brings one pointer to `run` consecutive inputs. */
#ifndef GF_MACS_I8_H
#define GF_MACS_I8_H
#include "gf_kernel.h"
#include "gf_macs_f32.h"

/* acc[pixel][block][vector] += sum over i < run of (x[pixel][i] - x_zero) * (w[block][i][lanes] - w_zero); rows of w are `row` bytes apart. */
GF_INLINE void gf_macs_i8(gf_vi32 *acc, const int pixels, const int blocks, const int8_t *const *x, int32_t x_zero, const int8_t *w,
                          int32_t block, int32_t row, int32_t w_zero, int32_t run) {
  for (int32_t i = 0; i < run; i++) {
    for (int v = 0; v < blocks * GF_BLOCK_VECTORS; v++) {
      const int8_t *lanes = w + (ptrdiff_t)(v / GF_BLOCK_VECTORS) * block + (ptrdiff_t)i * row + v % GF_BLOCK_VECTORS * GF_LANES;
      gf_vi8 narrow = *(const gf_vi8_u *)lanes;
      gf_vi16 wider = __builtin_convertvector(narrow, gf_vi16); /* in two steps: gcc 12 takes the direct one lane by lane */
      gf_vi32 weight = __builtin_convertvector(wider, gf_vi32) - w_zero;
      for (int p = 0; p < pixels; p++) acc[p * blocks * GF_BLOCK_VECTORS + v] += (x[p][i] - x_zero) * weight;
    }
  }
}

/* y[i] = saturate(requantise(acc[i] + bias[i])) for the n valid lanes. */
GF_INLINE void gf_store_i8(int8_t *y, const int32_t *acc, const int32_t *bias, const int32_t *mul, const uint8_t *shift, int32_t n, int32_t zero,
                           int32_t lo, int32_t hi) {
  for (int32_t i = 0; i < n; i++) y[i] = gf_saturate(gf_requantise(acc[i] + bias[i], mul[i], shift[i]), zero, lo, hi);
}
#endif
