/* The inner loops of the dense kernels: a few pixels by a few blocks of 16 output channels, accumulators in registers.
   Each pixel brings one pointer to `run` consecutive inputs. Weights are [run][16] per block: rows of 16 lanes stand `row` elements apart,
   blocks `block` apart, so that packed weights and a plain row-major matrix serve alike. */
#ifndef GF_MACS_H
#define GF_MACS_H
#include "gf_dot.h"
#include "gf_kernel.h"

#define GF_BLOCK 16 /* output channels packed together */
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
#define GF_ROW_BLOCKS 4 /* blocks at once where there is a single row of inputs */

/* acc[pixel][block][vector] += sum over i < run of x[pixel][i] * w[block][i][lanes]. */
GF_INLINE void gf_macs_f32(gf_vf32 *acc, const int pixels, const int blocks, const float *const *x, const float *w, int32_t block, int32_t row,
                           int32_t run) {
  const int vectors = blocks * GF_BLOCK_VECTORS;
  for (int32_t i = 0; i < run; i++, w += row) {
    for (int v = 0; v < vectors; v++) {
      gf_vf32 weight = *(const gf_vf32_u *)(w + (ptrdiff_t)(v / GF_BLOCK_VECTORS) * block + v % GF_BLOCK_VECTORS * GF_LANES);
      for (int p = 0; p < pixels; p++) acc[p * vectors + v] += x[p][i] * weight;
    }
  }
}

/* The inputs x[pixel][i] of gf_macs_i8. */
GF_INLINE void gf_mac_i8(gf_vi32 *acc, const int pixels, const int vectors, const int8_t *const *x, int32_t i, int32_t x_zero, const int8_t *w,
                         int32_t w_zero, int32_t block) {
  for (int v = 0; v < vectors; v++) {
    gf_vi8 narrow = *(const gf_vi8_u *)(w + (ptrdiff_t)(v / GF_BLOCK_VECTORS) * block + v % GF_BLOCK_VECTORS * GF_LANES);
    gf_vi16 wider = __builtin_convertvector(narrow, gf_vi16); /* in two steps: gcc 12 takes the direct one lane by lane */
    gf_vi32 weight = __builtin_convertvector(wider, gf_vi32) - w_zero;
    for (int p = 0; p < pixels; p++) acc[p * vectors + v] += (x[p][i] - x_zero) * weight;
  }
}

#ifdef GF_DOT
/* The inputs x[pixel][i] and x[pixel][i + 1] of gf_macs_i8. */
GF_INLINE void gf_mac_pair_i8(gf_vi32 *acc, const int pixels, const int vectors, const int8_t *const *x, int32_t i, int32_t x_zero,
                              const int8_t *w, int32_t w_zero, int32_t block, int32_t row) {
  gf_pairs weight[GF_ROW_BLOCKS * GF_BLOCK_VECTORS], input;
  for (int v = 0; v < vectors; v++) {
    const int8_t *at = w + (ptrdiff_t)(v / GF_BLOCK_VECTORS) * block + v % GF_BLOCK_VECTORS * GF_LANES;
    gf_pairs_join(weight + v, at, at + row, w_zero);
  }
  for (int p = 0; p < pixels; p++) {
    gf_pairs_repeat(&input, x[p] + i, x_zero);
    for (int v = 0; v < vectors; v++) gf_dot(acc + p * vectors + v, &input, weight + v);
  }
}
#endif

/* acc[pixel][block][vector] += sum over i < run of (x[pixel][i] - x_zero) * (w[block][i][lanes] - w_zero). */
GF_INLINE void gf_macs_i8(gf_vi32 *acc, const int pixels, const int blocks, const int8_t *const *x, int32_t x_zero, const int8_t *w,
                          int32_t w_zero, int32_t block, int32_t row, int32_t run) {
  int32_t i = 0;
#ifdef GF_DOT
  for (; i + 1 < run; i += 2, w += 2 * row) gf_mac_pair_i8(acc, pixels, blocks * GF_BLOCK_VECTORS, x, i, x_zero, w, w_zero, block, row);
#endif
  for (; i < run; i++, w += row) gf_mac_i8(acc, pixels, blocks * GF_BLOCK_VECTORS, x, i, x_zero, w, w_zero, block);
}

/* y[i] = clamp(acc[i] + bias[i]) for the n valid lanes; a NaN stays one. */
static inline void gf_store_f32(float *y, const float *acc, const float *bias, int32_t n, float lo, float hi) {
  for (int32_t i = 0; i < n; i++) {
    float v = acc[i] + bias[i];
    v = v < lo ? lo : v;
    y[i] = v > hi ? hi : v;
  }
}

/* Partial sums in L1: sums[i][lane] becomes acc[i][lane], or in later calls grows by it. Rows are sums_row and acc_row elements apart. */
static inline void gf_add_sums_f32(float *sums, ptrdiff_t sums_row, const float *acc, ptrdiff_t acc_row, int32_t rows, int32_t lanes, int32_t first) {
  for (int32_t i = 0; i < rows; i++, sums += sums_row, acc += acc_row) {
    for (int32_t v = 0; v < lanes; v++) sums[v] = first ? acc[v] : sums[v] + acc[v];
  }
}

/* Partial sums in L1: sums[i][lane] becomes acc[i][lane], or in later calls grows by it. Rows are sums_row and acc_row elements apart. */
static inline void gf_add_sums_i8(int32_t *sums, ptrdiff_t sums_row, const int32_t *acc, ptrdiff_t acc_row, int32_t rows, int32_t lanes, int32_t first) {
  for (int32_t i = 0; i < rows; i++, sums += sums_row, acc += acc_row) {
    for (int32_t v = 0; v < lanes; v++) sums[v] = first ? acc[v] : sums[v] + acc[v];
  }
}
#endif
