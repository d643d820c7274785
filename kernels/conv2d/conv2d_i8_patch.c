/* Few input channels in any storage order, one group, weights [k / 16][r][s][c][16]: each core copies the windows of a few pixels into
   scratch, the zero point where they run over the border, and then has one long run a pixel. */
#include "gf_conv2d_i8_patch_args.h"
#include "gf_conv.h"
#include "gf_requantise.h"
#include "gf_window.h"

typedef gf_conv2d_i8_patch_args call;

/* Copies the part of one window that lies inside x, `channels` of it; the rest of the patch is as before. */
GF_INLINE void gather(const call *a, int8_t *patch, ptrdiff_t first, gf_range rows, gf_range columns, const int32_t channels) {
  const ptrdiff_t h_step = (ptrdiff_t)a->dilations[0] * a->x_s[2], w_step = (ptrdiff_t)a->dilations[1] * a->x_s[3], c_step = a->x_s[1];
  for (int32_t r = rows.begin; r < rows.end; r++) {
    int8_t *tap = patch + (r * a->s + columns.begin) * channels;
    const int8_t *from = a->x + (first + r * h_step + columns.begin * w_step);
    for (int32_t s = columns.begin; s < columns.end; s++, tap += channels, from += w_step) {
      for (int32_t c = 0; c < channels; c++) tap[c] = from[c * c_step];
    }
  }
}

/* The usual channel counts have loops of their own, unrolled: general ones cost more than they copy. */
static void fill(const call *a, int8_t *patch, int32_t n, int32_t h, int32_t w) {
  gf_range rows = gf_taps(h, a->dilations[0], a->r, a->x_h), columns = gf_taps(w, a->dilations[1], a->s, a->x_w);
  int whole = rows.end - rows.begin == a->r && columns.end - columns.begin == a->s;
  int32_t taps = a->r * a->s * a->c;
  for (int32_t i = 0; !whole && i < taps; i++) patch[i] = a->x_zero;
  if (rows.begin == rows.end || columns.begin == columns.end) return;
  ptrdiff_t first = (ptrdiff_t)n * a->x_s[0] + (ptrdiff_t)h * a->x_s[2] + (ptrdiff_t)w * a->x_s[3];
  switch (a->c) {
    case 1: gather(a, patch, first, rows, columns, 1); break;
    case 3: gather(a, patch, first, rows, columns, 3); break;
    default: gather(a, patch, first, rows, columns, a->c);
  }
}

GF_INLINE void tile(const call *a, const gf_result_i8 *y, const int8_t *const *x, int32_t at, int32_t valid, int32_t k, const int blocks) {
  gf_vi32 acc[GF_PIXELS * GF_BLOCKS * GF_BLOCK_VECTORS] = {{0}};
  int32_t run = a->r * a->s * a->c;
  gf_macs_i8(acc, GF_PIXELS, blocks, x, a->x_zero, a->weight + (ptrdiff_t)k * run, 0, GF_BLOCK * run, GF_BLOCK, run);
  gf_result_i8_rows(y, at, k, (const int32_t *)acc, blocks * GF_BLOCK, valid, GF_MIN(blocks * GF_BLOCK, a->k - k));
}

void gf_conv2d_i8_patch(const void *args) {
  const call *a = args;
  int8_t *patches = (int8_t *)a->patch + gf_core_id() * a->patch_pitch;
  gf_result_i8 y = {a->y, a->y_pitch, a->y_line, a->q, {a->bias, a->mul, a->shift, a->y_zero, a->lo, a->hi},
                    {a->addend, a->addend_pitch, a->addend_zero, a->addend_mul, a->sum_mul, a->sum_shift, a->sum_zero, a->sum_lo, a->sum_hi}};
  gf_window_grid grid = {a->p, a->q, a->strides, a->x_h_before, a->x_w_before};
  const int32_t pixels = a->n * a->p * a->q;
  gf_product mine = gf_share_product(gf_ceildiv(pixels, GF_PIXELS), gf_ceildiv(a->k, GF_BLOCK));
  while (gf_product_next(&mine)) {
    int32_t at = mine.outer * GF_PIXELS, valid = GF_MIN(GF_PIXELS, pixels - at);
    int32_t k = mine.run.begin * GF_BLOCK, end = GF_MIN(mine.run.end * GF_BLOCK, a->k);
    const int8_t *x[GF_PIXELS];
    gf_windows windows;
    gf_windows_find(&windows, &grid, at, valid);
    for (int32_t i = 0; i < GF_PIXELS; i++) {
      int32_t from = GF_MIN(i, valid - 1);
      x[i] = patches + from * a->r * a->s * a->c;
      if (i < valid) fill(a, patches + i * a->r * a->s * a->c, windows.n[i], windows.h[i], windows.w[i]);
    }
    for (; k + (GF_BLOCKS - 1) * GF_BLOCK < end; k += GF_BLOCKS * GF_BLOCK) tile(a, &y, x, at, valid, k, GF_BLOCKS);
    for (; k < end; k += GF_BLOCK) tile(a, &y, x, at, valid, k, 1);
  }
}
