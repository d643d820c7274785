/* One group, weights [k / 16][r][s][c][16]. */
#include "gf_conv_f32.h"
#include "gf_conv2d_f32_blocked_args.h"
#include "gf_result_f32.h"

typedef gf_conv2d_f32_blocked_args call;

GF_INLINE void tile(const gf_result_f32 *y, const gf_conv *conv, const gf_windows *windows, int32_t channels, int32_t at, int32_t valid, int32_t k, const int blocks) {
  gf_vf32 acc[GF_PIXELS * GF_BLOCKS * GF_BLOCK_VECTORS] = {{0}};
  const int32_t lanes = GF_MIN(blocks * GF_BLOCK, channels - k);
  gf_conv_add(conv, windows, k, acc, blocks);
  for (int32_t i = 0; i < valid; i++) gf_result_f32_row(y, at + i, k, (const float *)(acc + i * blocks * GF_BLOCK_VECTORS), lanes);
}

void gf_conv2d_f32_blocked(const void *args) {
  const call *a = args;
  float *border = (float *)(void *)(a->border + gf_core_id() * a->border_pitch);
  gf_conv conv = {a->x, a->weight, border, a->x_h, a->x_w, a->c, a->x_pitch, a->r, a->s, 0, a->dilations};
  gf_result_f32 y = {a->y, a->y_pitch, a->y_line, a->q, a->bias, a->lo, a->hi, a->low, a->high,
                     a->addend, a->addend_pitch, a->sum_lo, a->sum_hi};
  gf_window_grid grid = {a->p, a->q, a->strides, a->x_h_before, a->x_w_before};
  const int32_t pixels = a->n * a->p * a->q;
  gf_product mine = gf_share_product(gf_ceildiv(pixels, GF_PIXELS), gf_ceildiv(a->k, GF_BLOCK));
  for (int32_t c = 0; c < a->c; c++) border[c] = 0;
  while (gf_product_next(&mine)) {
    int32_t at = mine.outer * GF_PIXELS, valid = GF_MIN(GF_PIXELS, pixels - at);
    int32_t k = mine.run.begin * GF_BLOCK, end = GF_MIN(mine.run.end * GF_BLOCK, a->k);
    gf_windows windows;
    gf_windows_find(&windows, &grid, at, valid);
    for (; k + (GF_BLOCKS - 1) * GF_BLOCK < end; k += GF_BLOCKS * GF_BLOCK) tile(&y, &conv, &windows, a->k, at, valid, k, GF_BLOCKS);
    for (; k < end; k += GF_BLOCK) tile(&y, &conv, &windows, a->k, at, valid, k, 1);
  }
}
