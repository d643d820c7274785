/* Sums of convolution windows, one group, weights [k / 16][r][s][c][16]: a few pixels by one or two blocks of channels in registers.
   Windows may run over the border: there a pixel reads a row of border values instead. Included by gf_conv_f32.h and gf_conv_i8.h, after
   typedefs of gf_element and gf_sums and a macro gf_conv_macs. */
#ifndef GF_CONV_SUMS_H
#define GF_CONV_SUMS_H
#include "gf_conv.h"

/* The tiles of x, whose pixels lie a pitch apart, and the weights; `border` has c elements. */
typedef struct {
  const gf_element *x, *weight, *border;
  int32_t h, w, c, pitch, r, s, x_zero;
  const int32_t *dilations;
} gf_conv;

/* Each pixel's input at offset (h, w) of its window, the border outside. Returns how many are inside. */
static inline int gf_conv_locate(const gf_conv *a, const gf_windows *windows, int32_t h, int32_t w, const gf_element **x) {
  int inside = 0;
  for (int i = 0; i < GF_PIXELS; i++) {
    int32_t row = windows->h[i] + h, column = windows->w[i] + w;
    int in = row >= 0 && row < a->h && column >= 0 && column < a->w;
    x[i] = in ? a->x + (ptrdiff_t)((windows->n[i] * a->h + row) * a->w + column) * a->pitch : a->border;
    inside += in;
  }
  return inside;
}

/* Adds row r of the windows: in one run where the taps of every pixel lie side by side, otherwise tap by tap. */
GF_INLINE void gf_conv_row(const gf_conv *a, const gf_windows *windows, int32_t r, int32_t k, gf_sums *acc, const int blocks) {
  int32_t block = GF_BLOCK * a->r * a->s * a->c, h = r * a->dilations[0];
  const gf_element *x[GF_PIXELS], *weight = a->weight + (ptrdiff_t)k * a->r * a->s * a->c + (ptrdiff_t)r * a->s * a->c * GF_BLOCK;
  int joined = a->dilations[1] == 1 && a->pitch == a->c && gf_windows_inside(windows->h, h, 1, a->h) && gf_windows_inside(windows->w, 0, a->s, a->w);
  int32_t taps = joined ? 1 : a->s, run = joined ? a->s * a->c : a->c;
  for (int32_t s = 0; s < taps; s++, weight += run * GF_BLOCK) {
    if (gf_conv_locate(a, windows, h, s * a->dilations[1], x)) gf_conv_macs(acc, blocks, x, a->x_zero, weight, block, run);
  }
}

/* acc[pixel][block][vector] += the windows' sums for `blocks` blocks of channels from k. */
GF_INLINE void gf_conv_add(const gf_conv *a, const gf_windows *windows, int32_t k, gf_sums *acc, const int blocks) {
  for (int32_t r = 0; r < a->r; r++) gf_conv_row(a, windows, r, k, acc, blocks);
}
#endif
