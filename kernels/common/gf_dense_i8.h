/* y[row][lane] = saturate(requantise(sum over i < run of (x[row][i] - x_zero) * w[i][lane] + bias[lane])) for pointwise convolutions and linear layers. */
#ifndef GF_DENSE_I8_H
#define GF_DENSE_I8_H
#include "gf_macs.h"
#include "gf_requantise.h"

/* Weights are packed [lane / 16][run][16], zero padded; y rows are `y_row` bytes apart, x rows are dense. */
typedef struct {
  const int8_t *x, *w;
  int8_t *y;
  int32_t run, y_row, lanes, x_zero;
  gf_requant by;
} gf_dense_i8;

/* Rows from `at`, the last of the `valid` ones repeated to fill the registers, by `blocks` blocks of lanes. */
GF_INLINE void gf_dense_i8_tile(const gf_dense_i8 *d, int32_t at, int32_t valid, int32_t lane, const int rows, const int blocks) {
  gf_vi32 acc[GF_PIXELS * GF_ROW_BLOCKS * GF_BLOCK_VECTORS] = {{0}};
  const int8_t *x[GF_PIXELS];
  for (int p = 0; p < rows; p++) x[p] = d->x + (ptrdiff_t)(at + GF_MIN(p, valid - 1)) * d->run;
  gf_macs_i8(acc, rows, blocks, x, d->x_zero, d->w + (ptrdiff_t)lane * d->run, 0, GF_BLOCK * d->run, GF_BLOCK, d->run);
  gf_requant by = {d->by.bias + lane, d->by.mul + lane, d->by.shift + lane, d->by.zero, d->by.lo, d->by.hi};
  gf_requantise_rows(d->y + (ptrdiff_t)at * d->y_row + lane, d->y_row, (const int32_t *)acc, blocks * GF_BLOCK, valid,
                     GF_MIN(blocks * GF_BLOCK, d->lanes - lane), &by);
}

static inline void gf_dense_i8_one_row(const gf_dense_i8 *d, int32_t at, gf_range lanes) {
  int32_t lane = lanes.begin;
  for (; lane + (GF_ROW_BLOCKS - 1) * GF_BLOCK < lanes.end; lane += GF_ROW_BLOCKS * GF_BLOCK) gf_dense_i8_tile(d, at, 1, lane, 1, GF_ROW_BLOCKS);
  for (; lane < lanes.end; lane += GF_BLOCK) gf_dense_i8_tile(d, at, 1, lane, 1, 1);
}

static inline void gf_dense_i8_rows(const gf_dense_i8 *d, int32_t at, int32_t valid, gf_range lanes) {
  int32_t lane = lanes.begin;
  for (; lane + (GF_BLOCKS - 1) * GF_BLOCK < lanes.end; lane += GF_BLOCKS * GF_BLOCK) gf_dense_i8_tile(d, at, valid, lane, GF_PIXELS, GF_BLOCKS);
  for (; lane < lanes.end; lane += GF_BLOCK) gf_dense_i8_tile(d, at, valid, lane, GF_PIXELS, 1);
}

/* A box of rows and lanes; lanes.begin is a multiple of 16. */
static inline void gf_dense_i8_box(const gf_dense_i8 *d, gf_range rows, gf_range lanes) {
  for (int32_t at = rows.begin; at < rows.end; at += GF_PIXELS) {
    int32_t valid = GF_MIN(GF_PIXELS, rows.end - at);
    if (valid == 1) gf_dense_i8_one_row(d, at, lanes);
    else gf_dense_i8_rows(d, at, valid, lanes);
  }
}
#endif
