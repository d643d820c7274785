/* Input channels split over calls, partial sums in L1: [n][p][q][k]. One group, weights [k / 16][r][s][c][16]. */
#include "gf_conv_i8.h"
#include "gf_conv2d_i8_acc_args.h"
#include "gf_requantise.h"

typedef gf_conv2d_i8_acc_args call;

GF_INLINE void tile(const call *a, const gf_result_i8 *y, const gf_conv *conv, const gf_windows *windows, int32_t at, int32_t valid, int32_t k, const int blocks) {
  gf_vi32 acc[GF_PIXELS * GF_BLOCKS * GF_BLOCK_VECTORS] = {{0}};
  const int32_t lanes = GF_MIN(blocks * GF_BLOCK, a->k - k);
  gf_conv_add(conv, windows, k, acc, blocks);
  int32_t *sums = a->acc + (ptrdiff_t)at * a->k + k;
  gf_add_sums_i8(sums, a->k, (const int32_t *)acc, blocks * GF_BLOCK, valid, lanes, a->first);
  if (a->last) gf_result_i8_rows(y, at, k, sums, a->k, valid, lanes);
}

void gf_conv2d_i8_acc(const void *args) {
  const call *a = args;
  int8_t *border = (int8_t *)(a->border + gf_core_id() * a->border_pitch);
  gf_conv conv = {a->x, a->weight, border, a->x_h, a->x_w, a->c, a->x_pitch, a->r, a->s, a->x_zero, a->dilations};
  gf_result_i8 y = {a->y, a->y_pitch, a->y_line, a->q, {a->bias, a->mul, a->shift, a->y_zero, a->lo, a->hi},
                    {a->addend, a->addend_pitch, a->addend_zero, a->addend_mul, a->sum_mul, a->sum_shift, a->sum_zero, a->sum_lo, a->sum_hi}};
  gf_window_grid grid = {a->p, a->q, a->strides, a->x_h_before, a->x_w_before};
  const int32_t pixels = a->n * a->p * a->q;
  gf_product mine = gf_share_product(gf_ceildiv(pixels, GF_PIXELS), gf_ceildiv(a->k, GF_BLOCK));
  for (int32_t c = 0; c < a->c; c++) border[c] = a->x_zero;
  while (gf_product_next(&mine)) {
    int32_t at = mine.outer * GF_PIXELS, valid = GF_MIN(GF_PIXELS, pixels - at);
    int32_t k = mine.run.begin * GF_BLOCK, end = GF_MIN(mine.run.end * GF_BLOCK, a->k);
    gf_windows windows;
    gf_windows_find(&windows, &grid, at, valid);
    for (; k + (GF_BLOCKS - 1) * GF_BLOCK < end; k += GF_BLOCKS * GF_BLOCK) tile(a, &y, &conv, &windows, at, valid, k, GF_BLOCKS);
    for (; k < end; k += GF_BLOCK) tile(a, &y, &conv, &windows, at, valid, k, 1);
  }
}
