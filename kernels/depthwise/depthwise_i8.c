/* Channels last, weights [r][s][c]. A few pixels at a time, so that they share the preparation of their channels' requantisation. */
#include "gf_depthwise_i8_args.h"
#include "gf_depthwise.h"
#include "gf_requantise.h"

typedef gf_depthwise_i8_args call;

enum { PIXELS = 8 };

/* acc += (x - x_zero) * weight: the product of 9 by 8 bits just fits 16, the sum does not. */
GF_INLINE void mac(gf_ci32 *acc, const int8_t *x, int32_t x_zero, const int8_t *weight) {
  gf_ci8 x8 = *(const gf_ci8_u *)x, w8 = *(const gf_ci8_u *)weight;
  gf_ci16 product = (__builtin_convertvector(x8, gf_ci16) - (int16_t)x_zero) * __builtin_convertvector(w8, gf_ci16);
  *acc += __builtin_convertvector(product, gf_ci32);
}

/* Sums of `vectors` vectors of channels from c. */
GF_INLINE void channels(const call *a, const gf_window *window, int32_t c, int32_t *sums, const int vectors) {
  gf_ci32 acc[GF_CHANNEL_VECTORS] = {{0}};
  const ptrdiff_t row = (ptrdiff_t)a->dilations[0] * a->x_w * a->c, column = (ptrdiff_t)a->dilations[1] * a->c;
  for (int32_t r = window->rows.begin; r < window->rows.end; r++) {
    const int8_t *x = a->x + (window->first + r * row + window->columns.begin * column + c);
    const int8_t *weight = a->weight + (r * a->s + window->columns.begin) * a->c + c;
    for (int32_t s = window->columns.begin; s < window->columns.end; s++, x += column, weight += a->c) {
      for (int v = 0; v < vectors; v++) mac(acc + v, x + v * GF_CHANNELS, a->x_zero, weight + v * GF_CHANNELS);
    }
  }
  for (int v = 0; v < vectors; v++) *(gf_ci32_u *)(sums + v * GF_CHANNELS) = acc[v];
}

/* The sum of one channel, where there are too few for a vector. */
static void channel(const call *a, const gf_window *window, int32_t c, int32_t *sum) {
  const ptrdiff_t row = (ptrdiff_t)a->dilations[0] * a->x_w * a->c, column = (ptrdiff_t)a->dilations[1] * a->c;
  *sum = 0;
  for (int32_t r = window->rows.begin; r < window->rows.end; r++) {
    for (int32_t s = window->columns.begin; s < window->columns.end; s++) {
      *sum += (a->x[window->first + r * row + s * column + c] - a->x_zero) * a->weight[(r * a->s + s) * a->c + c];
    }
  }
}

/* Requantises `count` channels from c of a few pixels. */
static void store(const call *a, int8_t *y, const int32_t *sums, int32_t pixels, int32_t c, int32_t count) {
  gf_requant by = {a->bias + c, a->mul + c, a->shift + c, a->y_zero, a->lo, a->hi};
  gf_requantise_rows(y + c, a->c, sums, GF_WIDE_CHANNELS, pixels, count, &by);
}

static void pixels(const call *a, const gf_window *windows, int8_t *y, int32_t count) {
  int32_t sums[PIXELS * GF_WIDE_CHANNELS], c = 0;
  for (; c + GF_WIDE_CHANNELS <= a->c; c += GF_WIDE_CHANNELS) {
    for (int32_t i = 0; i < count; i++) channels(a, windows + i, c, sums + i * GF_WIDE_CHANNELS, GF_CHANNEL_VECTORS);
    store(a, y, sums, count, c, GF_WIDE_CHANNELS);
  }
  for (; c < a->c && a->c >= GF_CHANNELS; c += GF_CHANNELS) {
    int32_t from = GF_MIN(c, a->c - GF_CHANNELS);
    for (int32_t i = 0; i < count; i++) channels(a, windows + i, from, sums + i * GF_WIDE_CHANNELS, 1);
    store(a, y, sums, count, from, GF_CHANNELS);
  }
  for (; c < a->c; c++) {
    for (int32_t i = 0; i < count; i++) channel(a, windows + i, c, sums + i * GF_WIDE_CHANNELS);
    store(a, y, sums, count, c, 1);
  }
}

void gf_depthwise_i8(const void *args) {
  const call *a = args;
  gf_window_space x = {a->x_h, a->x_w, a->c, a->r, a->s, a->x_h_before, a->x_w_before, a->strides, a->dilations};
  gf_range mine = gf_share(a->n * a->p * a->q);
  for (int32_t i = mine.begin; i < mine.end; i += PIXELS) {
    gf_window windows[PIXELS];
    int32_t count = GF_MIN(PIXELS, mine.end - i);
    gf_windows_of(windows, &x, gf_pixel_at(i, a->p, a->q), count, a->p, a->q);
    pixels(a, windows, a->y + (ptrdiff_t)i * a->c, count);
  }
}
