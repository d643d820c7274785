/* The inner loop of every dense float kernel: a few pixels by a few blocks of 16 output channels, accumulators in registers.
   Weights are packed [run][16] per block; each pixel brings one pointer to `run` consecutive inputs. */
#ifndef GF_MACS_F32_H
#define GF_MACS_F32_H
#include "gf_kernel.h"

#define GF_BLOCK 16                       /* output channels packed together */
#define GF_BLOCK_VECTORS (GF_BLOCK / GF_LANES)
/* Accumulators must fit the register file: 32 vectors of 16 lanes, 16 of 8 or 4. */
#if GF_LANES == 16
#define GF_PIXELS 8
#define GF_BLOCKS 2
#elif GF_LANES == 8
#define GF_PIXELS 4
#define GF_BLOCKS 1
#else
#define GF_PIXELS 2
#define GF_BLOCKS 1
#endif

/* acc[pixel][block][vector] += sum over i < run of x[pixel][i] * w[block][i][lanes]; rows of w are `row` floats apart, blocks `block`. */
GF_INLINE void gf_macs_f32(gf_vf32 *acc, const int pixels, const int blocks, const float *const *x, const float *w, int32_t block, int32_t row,
                           int32_t run) {
  for (int32_t i = 0; i < run; i++) {
    for (int v = 0; v < blocks * GF_BLOCK_VECTORS; v++) {
      const float *lanes = w + (ptrdiff_t)(v / GF_BLOCK_VECTORS) * block + (ptrdiff_t)i * row + v % GF_BLOCK_VECTORS * GF_LANES;
      gf_vf32 weight = *(const gf_vf32_u *)lanes;
      for (int p = 0; p < pixels; p++) acc[p * blocks * GF_BLOCK_VECTORS + v] += x[p][i] * weight;
    }
  }
}

/* y[i] = clamp(acc[i] + bias[i]) for the n valid lanes; a NaN stays one. */
GF_INLINE void gf_store_f32(float *y, const float *acc, const float *bias, int32_t n, float lo, float hi) {
  for (int32_t i = 0; i < n; i++) {
    float v = acc[i] + bias[i];
    v = v < lo ? lo : v;
    y[i] = v > hi ? hi : v;
  }
}
#endif
