/* Channels last, weights [r][s][c]. */
#include "gf_depthwise_f32_args.h"
#include "gf_depthwise.h"
#include "gf_window.h"

typedef gf_depthwise_f32_args call;

/* First channel that tap (r, s) of the window reads. */
static inline const float *tap(const call *a, const gf_window *window, int32_t r, int32_t s) {
  int32_t row = window->n * a->x_h + window->h + r * a->dilations[0];
  return a->x + (ptrdiff_t)(row * a->x_w + window->w + s * a->dilations[1]) * a->c;
}

/* Sums of `vectors` vectors of channels from c. */
GF_INLINE void channels(const call *a, const gf_window *window, int32_t c, float *sums, const int vectors) {
  gf_cf32 acc[GF_CHANNEL_VECTORS] = {{0}};
  for (int32_t r = window->rows.begin; r < window->rows.end; r++) {
    for (int32_t s = window->columns.begin; s < window->columns.end; s++) {
      const float *x = tap(a, window, r, s) + c, *weight = a->weight + (ptrdiff_t)(r * a->s + s) * a->c + c;
      for (int v = 0; v < vectors; v++) acc[v] += *(const gf_cf32_u *)(x + v * GF_CHANNELS) * *(const gf_cf32_u *)(weight + v * GF_CHANNELS);
    }
  }
  for (int v = 0; v < vectors; v++) *(gf_cf32_u *)(sums + v * GF_CHANNELS) = acc[v];
}

static float channel(const call *a, const gf_window *window, int32_t c) {
  float sum = 0;
  for (int32_t r = window->rows.begin; r < window->rows.end; r++) {
    for (int32_t s = window->columns.begin; s < window->columns.end; s++) sum += tap(a, window, r, s)[c] * a->weight[(r * a->s + s) * a->c + c];
  }
  return sum;
}

static void pixel(const call *a, const gf_window *window, float *y) {
  const int32_t wide = GF_CHANNEL_VECTORS * GF_CHANNELS;
  float sums[GF_CHANNEL_VECTORS * GF_CHANNELS];
  int32_t c = 0;
  for (; c + wide <= a->c; c += wide) {
    channels(a, window, c, sums, GF_CHANNEL_VECTORS);
    gf_store_f32(y + c, sums, a->bias + c, wide, a->lo, a->hi);
  }
  for (; c < a->c && a->c >= GF_CHANNELS; c += GF_CHANNELS) {
    int32_t from = GF_MIN(c, a->c - GF_CHANNELS);
    channels(a, window, from, sums, 1);
    gf_store_f32(y + from, sums, a->bias + from, GF_CHANNELS, a->lo, a->hi);
  }
  for (; c < a->c; c++) {
    sums[0] = channel(a, window, c);
    gf_store_f32(y + c, sums, a->bias + c, 1, a->lo, a->hi);
  }
}

void gf_depthwise_f32(const void *args) {
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
