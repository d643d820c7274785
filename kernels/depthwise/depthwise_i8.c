/* Channels last, weights [r][s][c]. A few pixels at a time, so that they share the preparation of their channels' requantisation. */
#include "gf_depthwise_i8_args.h"
#include "gf_depthwise.h"
#include "gf_requantise.h"

typedef gf_depthwise_i8_args call;

enum { PIXELS = 8 };

/* acc += (x - x_zero) * weight: the product of 9 by 8 bits just fits 16, the sum does not. One for whole registers, one for GF_CHANNELS. */
#define MAC_OF(NAME, V8, V16, V32)                                                                               \
  GF_INLINE void NAME(V32 *acc, const int8_t *x, int32_t x_zero, const int8_t *weight) {                         \
    V8 x8 = *(const V8##_u *)x, w8 = *(const V8##_u *)weight;                                                    \
    V16 product = (__builtin_convertvector(x8, V16) - (int16_t)x_zero) * __builtin_convertvector(w8, V16);       \
    *acc += __builtin_convertvector(product, V32);                                                               \
  }
MAC_OF(mac_wide, gf_vi8, gf_vi16, gf_vi32)
MAC_OF(mac, gf_ci8, gf_ci16, gf_ci32)
#undef MAC_OF

/* Sums of GF_WIDE_CHANNELS channels from c. */
GF_INLINE void wide_channels(const call *a, const gf_window *window, int32_t c, int32_t *sums) {
  gf_vi32 acc[GF_WIDE_VECTORS] = {{0}};
  const ptrdiff_t row = (ptrdiff_t)a->dilations[0] * a->x_w * a->x_pitch, column = (ptrdiff_t)a->dilations[1] * a->x_pitch;
  for (int32_t r = window->rows.begin; r < window->rows.end; r++) {
    const int8_t *x = a->x + (window->first + r * row + window->columns.begin * column + c);
    const int8_t *weight = a->weight + (r * a->s + window->columns.begin) * a->c + c;
    for (int32_t s = window->columns.begin; s < window->columns.end; s++, x += column, weight += a->c) {
      for (int v = 0; v < GF_WIDE_VECTORS; v++) mac_wide(acc + v, x + v * GF_LANES, a->x_zero, weight + v * GF_LANES);
    }
  }
  for (int v = 0; v < GF_WIDE_VECTORS; v++) *(gf_vi32_u *)(sums + v * GF_LANES) = acc[v];
}

/* Sums of GF_CHANNELS channels from c. */
GF_INLINE void channels(const call *a, const gf_window *window, int32_t c, int32_t *sums) {
  gf_ci32 acc = {0};
  const ptrdiff_t row = (ptrdiff_t)a->dilations[0] * a->x_w * a->x_pitch, column = (ptrdiff_t)a->dilations[1] * a->x_pitch;
  for (int32_t r = window->rows.begin; r < window->rows.end; r++) {
    const int8_t *x = a->x + (window->first + r * row + window->columns.begin * column + c);
    const int8_t *weight = a->weight + (r * a->s + window->columns.begin) * a->c + c;
    for (int32_t s = window->columns.begin; s < window->columns.end; s++, x += column, weight += a->c) mac(&acc, x, a->x_zero, weight);
  }
  *(gf_ci32_u *)sums = acc;
}

/* The sum of one channel, where there are too few for a vector. */
static void channel(const call *a, const gf_window *window, int32_t c, int32_t *sum) {
  const ptrdiff_t row = (ptrdiff_t)a->dilations[0] * a->x_w * a->x_pitch, column = (ptrdiff_t)a->dilations[1] * a->x_pitch;
  *sum = 0;
  for (int32_t r = window->rows.begin; r < window->rows.end; r++) {
    for (int32_t s = window->columns.begin; s < window->columns.end; s++) {
      *sum += (a->x[window->first + r * row + s * column + c] - a->x_zero) * a->weight[(r * a->s + s) * a->c + c];
    }
  }
}

static void pixels(const call *a, const gf_window *windows, const gf_result_i8 *y, int32_t at, int32_t count) {
  int32_t sums[PIXELS * GF_WIDE_CHANNELS], c = 0;
  for (; c + GF_WIDE_CHANNELS <= a->c; c += GF_WIDE_CHANNELS) {
    for (int32_t i = 0; i < count; i++) wide_channels(a, windows + i, c, sums + i * GF_WIDE_CHANNELS);
    gf_result_i8_rows(y, at, c, sums, GF_WIDE_CHANNELS, count, GF_WIDE_CHANNELS);
  }
  for (; c < a->c && a->c >= GF_CHANNELS; c += GF_CHANNELS) {
    int32_t from = GF_MIN(c, a->c - GF_CHANNELS);
    for (int32_t i = 0; i < count; i++) channels(a, windows + i, from, sums + i * GF_WIDE_CHANNELS);
    gf_result_i8_rows(y, at, from, sums, GF_WIDE_CHANNELS, count, GF_CHANNELS);
  }
  for (; c < a->c; c++) {
    for (int32_t i = 0; i < count; i++) channel(a, windows + i, c, sums + i * GF_WIDE_CHANNELS);
    gf_result_i8_rows(y, at, c, sums, GF_WIDE_CHANNELS, count, 1);
  }
}

void gf_depthwise_i8(const void *args) {
  const call *a = args;
  gf_window_space x = {a->x_h, a->x_w, a->x_pitch, a->r, a->s, a->x_h_before, a->x_w_before, a->strides, a->dilations};
  gf_result_i8 y = {a->y, a->y_pitch, a->y_line, a->q, {a->bias, a->mul, a->shift, a->y_zero, a->lo, a->hi},
                    {a->addend, a->addend_pitch, a->addend_zero, a->addend_mul, a->sum_mul, a->sum_shift, a->sum_zero, a->sum_lo, a->sum_hi}};
  gf_range mine = gf_share(a->n * a->p * a->q);
  for (int32_t i = mine.begin; i < mine.end; i += PIXELS) {
    gf_window windows[PIXELS];
    int32_t count = GF_MIN(PIXELS, mine.end - i);
    gf_windows_of(windows, &x, gf_pixel_at(i, a->p, a->q), count, a->p, a->q);
    pixels(a, windows, &y, i, count);
  }
}
