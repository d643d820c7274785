/* Rows of int32 sums to int8: bias, requantisation and clamp, and where wanted a second tensor added, several channels a vector.
   The results are those of gf_requantise and gf_add_scaled, bit for bit. */
#ifndef GF_REQUANTISE_H
#define GF_REQUANTISE_H
#include "gf_kernel.h"

/* What each output channel is requantised by, and what all are clamped to. */
typedef struct {
  const int32_t *bias, *mul;
  const uint8_t *shift;
  int32_t zero, lo, hi;
} gf_requant;

/* A tensor added to what was requantised: both on one scale, rounded and clamped again. `x` NULL: none. Rows lie `row` elements apart. */
typedef struct {
  const int8_t *x;
  ptrdiff_t row;
  int32_t x_zero, x_mul, mul, shift, zero, lo, hi;
} gf_addend_i8;

#if GF_LANES > 4
#define GF_WIDE_LANES (GF_LANES / 2)
typedef int64_t gf_wi64 __attribute__((vector_size(8 * GF_WIDE_LANES)));
typedef uint64_t gf_wu64 __attribute__((vector_size(8 * GF_WIDE_LANES)));
typedef int32_t gf_wi32 __attribute__((vector_size(4 * GF_WIDE_LANES)));
typedef int16_t gf_wi16 __attribute__((vector_size(2 * GF_WIDE_LANES)));
typedef int8_t gf_wi8 __attribute__((vector_size(GF_WIDE_LANES)));
typedef int32_t gf_wi32_u __attribute__((vector_size(4 * GF_WIDE_LANES), aligned(4), may_alias));
typedef int8_t gf_wi8_u __attribute__((vector_size(GF_WIDE_LANES), aligned(1), may_alias));

/* A logical shift of a sum made positive by GF_UP stands for the arithmetic one, which fewer targets have in vectors: for |sum| < GF_UP. */
#define GF_UP ((uint64_t)1 << 62)

GF_INLINE void gf_clamp_wide(gf_wi64 *v, int64_t lo, int64_t hi) {
  gf_wi64 below = *v < lo;
  *v = (*v & ~below) | (lo & below);
  gf_wi64 above = *v > hi;
  *v = (*v & ~above) | (hi & above);
}

/* v, an int8 with zero point `zero`, plus the addend's lanes at x. */
GF_INLINE void gf_add_wide(gf_wi64 *v, const int8_t *x, int32_t zero, const gf_addend_i8 *add) {
  const uint64_t round = ((uint64_t)1 << (add->shift - 1)) + GF_UP, down = (GF_UP >> add->shift) - (uint64_t)add->zero;
  gf_wi32 own = __builtin_convertvector(*v, gf_wi32) - zero;
  gf_wi32 other = __builtin_convertvector(__builtin_convertvector(*(const gf_wi8_u *)x, gf_wi16), gf_wi32) - add->x_zero;
  gf_wi64 sum = __builtin_convertvector(own, gf_wi64) * add->mul + __builtin_convertvector(other, gf_wi64) * add->x_mul;
  *v = (gf_wi64)((((gf_wu64)sum + round) >> (uint64_t)add->shift) - down);
  gf_clamp_wide(v, add->lo, add->hi);
}

/* GF_WIDE_LANES channels from `at` of each row; |sum * mul + 2^(shift - 1)| < 2^62 + 2^61. */
GF_INLINE void gf_requantise_vector(int8_t *y, ptrdiff_t y_row, const int32_t *sums, ptrdiff_t row, int32_t rows, const gf_requant *by,
                                    const gf_addend_i8 *add, int32_t at) {
  const int64_t lo = by->lo, hi = by->hi, zero = by->zero;
  gf_wi32 bias = *(const gf_wi32_u *)(by->bias + at);
  gf_wi64 mul = __builtin_convertvector(*(const gf_wi32_u *)(by->mul + at), gf_wi64);
  gf_wu64 shift, one = {0};
  one += 1;
  for (int i = 0; i < GF_WIDE_LANES; i++) shift[i] = by->shift[at + i];
  gf_wu64 round = (one << (shift - 1)) + GF_UP, down = ((one * GF_UP) >> shift) - (uint64_t)zero;
  for (int32_t i = 0; i < rows; i++) {
    gf_wi32 sum = *(const gf_wi32_u *)(sums + i * row + at) + bias;
    gf_wi64 v = (gf_wi64)((((gf_wu64)(__builtin_convertvector(sum, gf_wi64) * mul) + round) >> shift) - down);
    gf_clamp_wide(&v, lo, hi);
    if (add) gf_add_wide(&v, add->x + i * add->row + at, (int32_t)zero, add);
    gf_wi16 narrow = __builtin_convertvector(__builtin_convertvector(v, gf_wi32), gf_wi16); /* one step at a time: see gf_macs_i8 */
    *(gf_wi8_u *)(y + i * y_row + at) = __builtin_convertvector(narrow, gf_wi8);
  }
}

#endif

/* One channel of each row; also the whole of it for targets without 64-bit lanes. */
GF_INLINE void gf_requantise_channel(int8_t *y, ptrdiff_t y_row, const int32_t *sums, ptrdiff_t row, int32_t rows, const gf_requant *by,
                                     const gf_addend_i8 *add, int32_t at) {
  for (int32_t i = 0; i < rows; i++) {
    int8_t v = gf_saturate(gf_requantise(sums[i * row + at] + by->bias[at], by->mul[at], by->shift[at]), by->zero, by->lo, by->hi);
    if (add) {
      int32_t other = add->x[i * add->row + at] - add->x_zero;
      v = gf_saturate(gf_add_scaled(v - by->zero, add->mul, other, add->x_mul, add->shift), add->zero, add->lo, add->hi);
    }
    y[i * y_row + at] = v;
  }
}

GF_INLINE void gf_requantise_either(int8_t *y, ptrdiff_t y_row, const int32_t *sums, ptrdiff_t row, int32_t rows, int32_t channels,
                                    const gf_requant *by, const gf_addend_i8 *add) {
  int32_t ragged = channels;
#if GF_LANES > 4 /* 64-bit lanes are worth it in registers of 32 bytes and more */
  ragged = channels % GF_WIDE_LANES;
  for (int32_t c = 0; c < channels - ragged; c += GF_WIDE_LANES) gf_requantise_vector(y, y_row, sums, row, rows, by, add, c);
#endif
  for (int32_t c = channels - ragged; c < channels; c++) gf_requantise_channel(y, y_row, sums, row, rows, by, add, c);
}

/* y[i][c] = saturate(requantise(sums[i][c] + bias[c])) for `rows` rows of `channels` channels; rows are y_row and `row` elements apart. */
static inline void gf_requantise_rows(int8_t *y, ptrdiff_t y_row, const int32_t *sums, ptrdiff_t row, int32_t rows, int32_t channels,
                                      const gf_requant *by) {
  gf_requantise_either(y, y_row, sums, row, rows, channels, by, NULL);
}

/* The rows of an int8 result: how sums become it, from channel 0 on. Lines of q rows each lie `line` elements apart (0: as q rows do). */
typedef struct {
  int8_t *y;
  ptrdiff_t row, line;
  int32_t q;
  gf_requant by;
  gf_addend_i8 add;
} gf_result_i8;

/* `rows` rows of one line. */
static inline void gf_result_i8_line(const gf_result_i8 *r, int32_t at, int32_t channel, const int32_t *sums, ptrdiff_t sums_row, int32_t rows,
                                     int32_t channels) {
  int8_t *y = r->y + gf_row_of_lines(at, r->row, r->line, r->q) + channel;
  gf_requant by = {r->by.bias + channel, r->by.mul + channel, r->by.shift + channel, r->by.zero, r->by.lo, r->by.hi};
  if (!r->add.x) {
    gf_requantise_either(y, r->row, sums, sums_row, rows, channels, &by, NULL);
    return;
  }
  gf_addend_i8 add = r->add;
  add.x += at * add.row + channel;
  gf_requantise_either(y, r->row, sums, sums_row, rows, channels, &by, &add);
}

/* `rows` rows from `at`, `channels` channels from `channel`: the rows of sums are sums_row elements apart. y may lie where the addend lies. */
static inline void gf_result_i8_rows(const gf_result_i8 *r, int32_t at, int32_t channel, const int32_t *sums, ptrdiff_t sums_row, int32_t rows,
                                     int32_t channels) {
  const int apart = gf_lines_apart(r->row, r->line, r->q);
  while (rows > 0) {
    const int32_t here = apart ? GF_MIN(rows, r->q - at % r->q) : rows;
    gf_result_i8_line(r, at, channel, sums, sums_row, here, channels);
    at += here;
    sums += here * sums_row;
    rows -= here;
  }
}
#endif
