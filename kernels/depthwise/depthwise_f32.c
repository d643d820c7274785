/* Channels last, weights [r][s][c]. */
#include "gf_depthwise_f32_args.h"
#include "gf_depthwise.h"
#include "gf_result_f32.h"

typedef gf_depthwise_f32_args call;

/* Sums of `vectors` vectors of channels from c. */
GF_INLINE void channels(const call *a, const gf_window *window, int32_t c, float *sums, const int vectors) {
  gf_cf32 acc[GF_CHANNEL_VECTORS] = {{0}};
  const ptrdiff_t row = (ptrdiff_t)a->dilations[0] * a->x_w * a->x_pitch, column = (ptrdiff_t)a->dilations[1] * a->x_pitch;
  for (int32_t r = window->rows.begin; r < window->rows.end; r++) {
    const float *x = a->x + (window->first + r * row + window->columns.begin * column + c);
    const float *weight = a->weight + (r * a->s + window->columns.begin) * a->c + c;
    for (int32_t s = window->columns.begin; s < window->columns.end; s++, x += column, weight += a->c) {
      for (int v = 0; v < vectors; v++) acc[v] += *(const gf_cf32_u *)(x + v * GF_CHANNELS) * *(const gf_cf32_u *)(weight + v * GF_CHANNELS);
    }
  }
  for (int v = 0; v < vectors; v++) *(gf_cf32_u *)(sums + v * GF_CHANNELS) = acc[v];
}

/* The sum of one channel, where there are too few for a vector. */
static void channel(const call *a, const gf_window *window, int32_t c, float *sum) {
  const ptrdiff_t row = (ptrdiff_t)a->dilations[0] * a->x_w * a->x_pitch, column = (ptrdiff_t)a->dilations[1] * a->x_pitch;
  *sum = 0;
  for (int32_t r = window->rows.begin; r < window->rows.end; r++) {
    for (int32_t s = window->columns.begin; s < window->columns.end; s++) {
      *sum += a->x[window->first + r * row + s * column + c] * a->weight[(r * a->s + s) * a->c + c];
    }
  }
}

static void pixel(const call *a, const gf_window *window, const gf_result_f32 *y, int32_t at) {
  float sums[GF_WIDE_CHANNELS];
  int32_t c = 0;
  for (; c + GF_WIDE_CHANNELS <= a->c; c += GF_WIDE_CHANNELS) {
    channels(a, window, c, sums, GF_CHANNEL_VECTORS);
    gf_result_f32_row(y, at, c, sums, GF_WIDE_CHANNELS);
  }
  for (; c < a->c && a->c >= GF_CHANNELS; c += GF_CHANNELS) {
    int32_t from = GF_MIN(c, a->c - GF_CHANNELS);
    channels(a, window, from, sums, 1);
    gf_result_f32_row(y, at, from, sums, GF_CHANNELS);
  }
  for (; c < a->c; c++) {
    channel(a, window, c, sums);
    gf_result_f32_row(y, at, c, sums, 1);
  }
}

void gf_depthwise_f32(const void *args) {
  const call *a = args;
  gf_window_space x = {a->x_h, a->x_w, a->x_pitch, a->r, a->s, a->x_h_before, a->x_w_before, a->strides, a->dilations};
  gf_result_f32 y = {a->y, a->y_pitch, a->y_line, a->q, a->bias, a->lo, a->hi, a->low, a->high,
                     a->addend, a->addend_pitch, a->sum_lo, a->sum_hi};
  gf_range mine = gf_share(a->n * a->p * a->q);
  gf_pixel at = gf_pixel_at(mine.begin, a->p, a->q);
  for (int32_t i = mine.begin; i < mine.end; i++, gf_pixel_next(&at, a->p, a->q)) {
    gf_window window;
    gf_windows_of(&window, &x, at, 1, a->p, a->q);
    pixel(a, &window, &y, i);
  }
}
