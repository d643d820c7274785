/* Rows of int32 sums to int8: bias, requantisation and clamp, several channels a vector. The results are gf_requantise's, bit for bit. */
#ifndef GF_REQUANTISE_H
#define GF_REQUANTISE_H
#include "gf_kernel.h"

/* What each output channel is requantised by, and what all are clamped to. */
typedef struct {
  const int32_t *bias, *mul;
  const uint8_t *shift;
  int32_t zero, lo, hi;
} gf_requant;

#if GF_LANES > 4
#define GF_WIDE_LANES (GF_LANES / 2)
typedef int64_t gf_wi64 __attribute__((vector_size(8 * GF_WIDE_LANES)));
typedef uint64_t gf_wu64 __attribute__((vector_size(8 * GF_WIDE_LANES)));
typedef int32_t gf_wi32 __attribute__((vector_size(4 * GF_WIDE_LANES)));
typedef int16_t gf_wi16 __attribute__((vector_size(2 * GF_WIDE_LANES)));
typedef int8_t gf_wi8 __attribute__((vector_size(GF_WIDE_LANES)));
typedef int32_t gf_wi32_u __attribute__((vector_size(4 * GF_WIDE_LANES), aligned(4), may_alias));
typedef int8_t gf_wi8_u __attribute__((vector_size(GF_WIDE_LANES), aligned(1), may_alias));

/* GF_WIDE_LANES channels from `at` of each row. A logical shift of a sum made positive by 2^62 stands for the arithmetic one, which fewer targets
   have in vectors; |sum * mul + 2^(shift - 1)| < 2^62 + 2^61. */
static inline void gf_requantise_vector(int8_t *y, ptrdiff_t y_row, const int32_t *sums, ptrdiff_t row, int32_t rows, const gf_requant *by,
                                        int32_t at) {
  const uint64_t up = (uint64_t)1 << 62;
  const int64_t lo = by->lo, hi = by->hi, zero = by->zero;
  gf_wi32 bias = *(const gf_wi32_u *)(by->bias + at);
  gf_wi64 mul = __builtin_convertvector(*(const gf_wi32_u *)(by->mul + at), gf_wi64);
  gf_wu64 shift, one = {0};
  one += 1;
  for (int i = 0; i < GF_WIDE_LANES; i++) shift[i] = by->shift[at + i];
  gf_wu64 round = (one << (shift - 1)) + up, down = ((one * up) >> shift) - (uint64_t)zero;
  for (int32_t i = 0; i < rows; i++) {
    gf_wi32 sum = *(const gf_wi32_u *)(sums + i * row + at) + bias;
    gf_wi64 v = (gf_wi64)((((gf_wu64)(__builtin_convertvector(sum, gf_wi64) * mul) + round) >> shift) - down);
    gf_wi64 below = v < lo;
    v = (v & ~below) | (lo & below);
    gf_wi64 above = v > hi;
    v = (v & ~above) | (hi & above);
    gf_wi16 narrow = __builtin_convertvector(__builtin_convertvector(v, gf_wi32), gf_wi16); /* one step at a time: see gf_macs_i8 */
    *(gf_wi8_u *)(y + i * y_row + at) = __builtin_convertvector(narrow, gf_wi8);
  }
}

#endif

/* One channel of each row; also the whole of it for targets without 64-bit lanes. */
static inline void gf_requantise_channel(int8_t *y, ptrdiff_t y_row, const int32_t *sums, ptrdiff_t row, int32_t rows, const gf_requant *by,
                                         int32_t at) {
  for (int32_t i = 0; i < rows; i++) {
    int64_t v = gf_requantise(sums[i * row + at] + by->bias[at], by->mul[at], by->shift[at]);
    y[i * y_row + at] = gf_saturate(v, by->zero, by->lo, by->hi);
  }
}

/* y[i][c] = saturate(requantise(sums[i][c] + bias[c])) for `rows` rows of `channels` channels; rows are y_row and `row` elements apart. */
static inline void gf_requantise_rows(int8_t *y, ptrdiff_t y_row, const int32_t *sums, ptrdiff_t row, int32_t rows, int32_t channels,
                                      const gf_requant *by) {
  int32_t ragged = channels;
#if GF_LANES > 4 /* 64-bit lanes are worth it in registers of 32 bytes and more */
  ragged = channels % GF_WIDE_LANES;
  for (int32_t c = 0; c < channels - ragged; c += GF_WIDE_LANES) gf_requantise_vector(y, y_row, sums, row, rows, by, c);
#endif
  for (int32_t c = channels - ragged; c < channels; c++) gf_requantise_channel(y, y_row, sums, row, rows, by, c);
}
#endif
