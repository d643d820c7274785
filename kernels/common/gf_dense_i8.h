/* y[row][lane] = saturate(requantise(sum over i < run of (x[row][i] - x_zero) * w[i][lane] + bias[lane])) for pointwise convolutions and linear layers. */
#ifndef GF_DENSE_I8_H
#define GF_DENSE_I8_H
#include "gf_macs.h"
#include "gf_requantise.h"

/* Weights are packed [lane / 16][run][16], zero padded; rows of x lie x_row elements apart, rows of sums are dense.
   `sums` is NULL, or where partial sums are kept over calls that each bring a part of the run: y is written in the last. */
typedef struct {
  const int8_t *x, *w;
  int32_t run, lanes, x_row, x_zero;
  gf_result_i8 y;
  int32_t *sums;
  int32_t first, last;
} gf_dense_i8;

/* Keeps, or writes to y, the sums of `rows` rows of `count` lanes. */
static inline void gf_dense_i8_finish(const gf_dense_i8 *d, const int32_t *acc, int32_t acc_row, int32_t at, int32_t rows, int32_t lane, int32_t count) {
  int32_t *sums = d->sums ? d->sums + (ptrdiff_t)at * d->lanes + lane : NULL;
  if (sums) gf_add_sums_i8(sums, d->lanes, acc, acc_row, rows, count, d->first);
  if (!d->last) return;
  if (sums) gf_result_i8_rows(&d->y, at, lane, sums, d->lanes, rows, count);
  else gf_result_i8_rows(&d->y, at, lane, acc, acc_row, rows, count);
}

/* Rows from `at`, the last of the `valid` ones repeated to fill the registers, by `blocks` blocks of lanes. */
GF_INLINE void gf_dense_i8_tile(const gf_dense_i8 *d, int32_t at, int32_t valid, int32_t lane, const int rows, const int blocks) {
  gf_vi32 acc[GF_PIXELS * GF_ROW_BLOCKS * GF_BLOCK_VECTORS] = {{0}};
  const int8_t *x[GF_PIXELS];
  for (int p = 0; p < rows; p++) x[p] = d->x + (ptrdiff_t)(at + GF_MIN(p, valid - 1)) * d->x_row;
  gf_macs_i8(acc, rows, blocks, x, d->x_zero, d->w + (ptrdiff_t)lane * d->run, 0, GF_BLOCK * d->run, GF_BLOCK, d->run);
  gf_dense_i8_finish(d, (const int32_t *)acc, blocks * GF_BLOCK, at, valid, lane, GF_MIN(blocks * GF_BLOCK, d->lanes - lane));
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

/* This core's share of the products of all rows and lanes, GF_PIXELS rows by a block of 16 lanes each. */
static inline void gf_dense_i8_share(const gf_dense_i8 *d, int32_t rows) {
  gf_product mine = gf_share_product(gf_ceildiv(rows, GF_PIXELS), gf_ceildiv(d->lanes, GF_BLOCK));
  while (gf_product_next(&mine)) {
    int32_t at = mine.outer * GF_PIXELS, valid = GF_MIN(GF_PIXELS, rows - at);
    gf_range lanes = {mine.run.begin * GF_BLOCK, GF_MIN(mine.run.end * GF_BLOCK, d->lanes)};
    if (valid == 1) gf_dense_i8_one_row(d, at, lanes);
    else gf_dense_i8_rows(d, at, valid, lanes);
  }
}
#endif
