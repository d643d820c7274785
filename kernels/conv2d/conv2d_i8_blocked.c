/* One group, weights [k / 16][r][s][c][16]: a few pixels by one or two blocks of channels in registers. Windows may run over the border:
   there a pixel reads a row of zero points instead. */
#include "gf_conv2d_i8_blocked_args.h"
#include "gf_conv.h"
#include "gf_requantise.h"

typedef gf_conv2d_i8_blocked_args call;

/* Each pixel's input at offset (h, w) of its window, zero points outside. Returns how many are inside. */
static int locate(const call *a, const int8_t *zeros, const gf_windows *windows, int32_t h, int32_t w, const int8_t **x) {
  int inside = 0;
  for (int i = 0; i < GF_PIXELS; i++) {
    int32_t row = windows->h[i] + h, column = windows->w[i] + w;
    int in = row >= 0 && row < a->x_h && column >= 0 && column < a->x_w;
    x[i] = in ? a->x + (ptrdiff_t)((windows->n[i] * a->x_h + row) * a->x_w + column) * a->c : zeros;
    inside += in;
  }
  return inside;
}

/* Adds row r of the windows: in one run where the taps of every pixel lie side by side, otherwise tap by tap. */
GF_INLINE void row(const call *a, const int8_t *zeros, const gf_windows *windows, int32_t r, int32_t k, gf_vi32 *acc, const int blocks) {
  int32_t block = GF_BLOCK * a->r * a->s * a->c, h = r * a->dilations[0];
  const int8_t *x[GF_PIXELS], *weight = a->weight + (ptrdiff_t)k * a->r * a->s * a->c + (ptrdiff_t)r * a->s * a->c * GF_BLOCK;
  int joined = a->dilations[1] == 1 && gf_windows_inside(windows->h, h, 1, a->x_h) && gf_windows_inside(windows->w, 0, a->s, a->x_w);
  int32_t taps = joined ? 1 : a->s, run = joined ? a->s * a->c : a->c;
  for (int32_t s = 0; s < taps; s++, weight += run * GF_BLOCK) {
    if (locate(a, zeros, windows, h, s * a->dilations[1], x)) gf_macs_i8(acc, GF_PIXELS, blocks, x, a->x_zero, weight, 0, block, GF_BLOCK, run);
  }
}

GF_INLINE void tile(const call *a, const int8_t *zeros, const gf_windows *windows, int32_t at, int32_t valid, int32_t k, const int blocks) {
  gf_vi32 acc[GF_PIXELS * GF_BLOCKS * GF_BLOCK_VECTORS] = {{0}};
  for (int32_t r = 0; r < a->r; r++) row(a, zeros, windows, r, k, acc, blocks);
  gf_requant by = {a->bias + k, a->mul + k, a->shift + k, a->y_zero, a->lo, a->hi};
  gf_requantise_rows(a->y + (ptrdiff_t)at * a->k + k, a->k, (const int32_t *)acc, blocks * GF_BLOCK, valid, GF_MIN(blocks * GF_BLOCK, a->k - k), &by);
}

void gf_conv2d_i8_blocked(const void *args) {
  const call *a = args;
  int8_t *zeros = (int8_t *)a->zeros + gf_core_id() * a->zeros_pitch;
  gf_window_grid grid = {a->p, a->q, a->strides, a->x_h_before, a->x_w_before};
  gf_range mine = gf_share_step(a->n * a->p * a->q, GF_PIXELS);
  for (int32_t c = 0; c < a->c; c++) zeros[c] = a->x_zero;
  for (int32_t at = mine.begin; at < mine.end; at += GF_PIXELS) {
    int32_t valid = GF_MIN(GF_PIXELS, mine.end - at), k = 0;
    gf_windows windows;
    gf_windows_find(&windows, &grid, at, valid);
    for (; k + (GF_BLOCKS - 1) * GF_BLOCK < a->k; k += GF_BLOCKS * GF_BLOCK) tile(a, zeros, &windows, at, valid, k, GF_BLOCKS);
    for (; k < a->k; k += GF_BLOCK) tile(a, zeros, &windows, at, valid, k, 1);
  }
}
