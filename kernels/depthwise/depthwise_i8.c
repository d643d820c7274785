/* Channels last, weights [r][s][c]. */
#include "gf_depthwise_i8_args.h"
#include "gf_depthwise.h"
#include "gf_window.h"

typedef gf_depthwise_i8_args call;

/* First channel that tap (r, s) of the window reads. */
static inline const int8_t *tap(const call *a, const gf_window *window, int32_t r, int32_t s) {
  int32_t row = window->n * a->x_h + window->h + r * a->dilations[0];
  return a->x + (ptrdiff_t)(row * a->x_w + window->w + s * a->dilations[1]) * a->c;
}

/* acc += (x - x_zero) * weight: the product of 9 by 8 bits just fits 16, the sum does not. */
GF_INLINE void mac(gf_ci32 *acc, const int8_t *x, int32_t x_zero, const int8_t *weight) {
  gf_ci8 x8 = *(const gf_ci8_u *)x, w8 = *(const gf_ci8_u *)weight;
  gf_ci16 product = (__builtin_convertvector(x8, gf_ci16) - (int16_t)x_zero) * __builtin_convertvector(w8, gf_ci16);
  *acc += __builtin_convertvector(product, gf_ci32);
}

/* Sums of `vectors` vectors of channels from c. */
GF_INLINE void channels(const call *a, const gf_window *window, int32_t c, int32_t *sums, const int vectors) {
  gf_ci32 acc[GF_CHANNEL_VECTORS] = {{0}};
  for (int32_t r = window->rows.begin; r < window->rows.end; r++) {
    for (int32_t s = window->columns.begin; s < window->columns.end; s++) {
      const int8_t *x = tap(a, window, r, s) + c, *weight = a->weight + (ptrdiff_t)(r * a->s + s) * a->c + c;
      for (int v = 0; v < vectors; v++) mac(acc + v, x + v * GF_CHANNELS, a->x_zero, weight + v * GF_CHANNELS);
    }
  }
  for (int v = 0; v < vectors; v++) *(gf_ci32_u *)(sums + v * GF_CHANNELS) = acc[v];
}

static int32_t channel(const call *a, const gf_window *window, int32_t c) {
  int32_t sum = 0;
  for (int32_t r = window->rows.begin; r < window->rows.end; r++) {
    for (int32_t s = window->columns.begin; s < window->columns.end; s++) {
      sum += (tap(a, window, r, s)[c] - a->x_zero) * a->weight[(r * a->s + s) * a->c + c];
    }
  }
  return sum;
}

static void store(const call *a, int8_t *y, const int32_t *sums, int32_t c, int32_t count) {
  gf_store_i8(y + c, sums, a->bias + c, a->mul + c, a->shift + c, count, a->y_zero, a->lo, a->hi);
}

static void pixel(const call *a, const gf_window *window, int8_t *y) {
  const int32_t wide = GF_CHANNEL_VECTORS * GF_CHANNELS;
  int32_t sums[GF_CHANNEL_VECTORS * GF_CHANNELS];
  int32_t c = 0;
  for (; c + wide <= a->c; c += wide) {
    channels(a, window, c, sums, GF_CHANNEL_VECTORS);
    store(a, y, sums, c, wide);
  }
  for (; c < a->c && a->c >= GF_CHANNELS; c += GF_CHANNELS) {
    int32_t from = GF_MIN(c, a->c - GF_CHANNELS);
    channels(a, window, from, sums, 1);
    store(a, y, sums, from, GF_CHANNELS);
  }
  for (; c < a->c; c++) {
    sums[0] = channel(a, window, c);
    store(a, y, sums, c, 1);
  }
}

void gf_depthwise_i8(const void *args) {
  const call *a = args;
  gf_range mine = gf_share(a->n * a->p * a->q);
  gf_pixel at = gf_pixel_at(mine.begin, a->p, a->q);
  for (int32_t i = mine.begin; i < mine.end; i++, gf_pixel_next(&at, a->p, a->q)) {
    gf_window window = {at.n, at.p * a->strides[0] - a->x_h_before, at.q * a->strides[1] - a->x_w_before, {0, 0}, {0, 0}};
    window.rows = gf_taps(window.h, a->dilations[0], a->r, a->x_h);
    window.columns = gf_taps(window.w, a->dilations[1], a->s, a->x_w);
    pixel(a, &window, a->y + (ptrdiff_t)i * a->c);
  }
}
