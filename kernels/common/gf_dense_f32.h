/* y[row][lane] = clamp(sum over i < run of x[row][i] * w[i][lane] + bias[lane]) for pointwise convolutions and linear layers. */
#ifndef GF_DENSE_F32_H
#define GF_DENSE_F32_H
#include "gf_macs.h"
#include "gf_result_f32.h"

/* Weights are packed [lane / 16][run][16], zero padded; rows of x lie x_row elements apart, rows of sums are dense.
   `sums` is NULL, or where partial sums are kept over calls that each bring a part of the run: y is written in the last. */
typedef struct {
  const float *x, *w;
  int32_t run, lanes, x_row;
  gf_result_f32 y;
  float *sums;
  int32_t first, last;
} gf_dense_f32;

/* Keeps, or writes to y, the sums of `rows` rows of `count` lanes. */
static inline void gf_dense_f32_finish(const gf_dense_f32 *d, const float *acc, int32_t acc_row, int32_t at, int32_t rows, int32_t lane, int32_t count) {
  float *sums = d->sums ? d->sums + (ptrdiff_t)at * d->lanes + lane : NULL;
  if (sums) gf_add_sums_f32(sums, d->lanes, acc, acc_row, rows, count, d->first);
  if (!d->last) return;
  for (int32_t i = 0; i < rows; i++) gf_result_f32_row(&d->y, at + i, lane, sums ? sums + (ptrdiff_t)i * d->lanes : acc + i * acc_row, count);
}

/* Rows from `at`, the last of the `valid` ones repeated to fill the registers, by `blocks` blocks of lanes. */
GF_INLINE void gf_dense_f32_tile(const gf_dense_f32 *d, int32_t at, int32_t valid, int32_t lane, const int rows, const int blocks) {
  gf_vf32 acc[GF_PIXELS * GF_ROW_BLOCKS * GF_BLOCK_VECTORS] = {{0}};
  const float *x[GF_PIXELS];
  for (int p = 0; p < rows; p++) x[p] = d->x + (ptrdiff_t)(at + GF_MIN(p, valid - 1)) * d->x_row;
  gf_macs_f32(acc, rows, blocks, x, d->w + (ptrdiff_t)lane * d->run, GF_BLOCK * d->run, GF_BLOCK, d->run);
  gf_dense_f32_finish(d, (const float *)acc, blocks * GF_BLOCK, at, valid, lane, GF_MIN(blocks * GF_BLOCK, d->lanes - lane));
}

static inline void gf_dense_f32_one_row(const gf_dense_f32 *d, int32_t at, gf_range lanes) {
  int32_t lane = lanes.begin;
  for (; lane + (GF_ROW_BLOCKS - 1) * GF_BLOCK < lanes.end; lane += GF_ROW_BLOCKS * GF_BLOCK) gf_dense_f32_tile(d, at, 1, lane, 1, GF_ROW_BLOCKS);
  for (; lane < lanes.end; lane += GF_BLOCK) gf_dense_f32_tile(d, at, 1, lane, 1, 1);
}

static inline void gf_dense_f32_rows(const gf_dense_f32 *d, int32_t at, int32_t valid, gf_range lanes) {
  int32_t lane = lanes.begin;
  for (; lane + (GF_BLOCKS - 1) * GF_BLOCK < lanes.end; lane += GF_BLOCKS * GF_BLOCK) gf_dense_f32_tile(d, at, valid, lane, GF_PIXELS, GF_BLOCKS);
  for (; lane < lanes.end; lane += GF_BLOCK) gf_dense_f32_tile(d, at, valid, lane, GF_PIXELS, 1);
}

/* This core's share of the products of all rows and lanes, GF_PIXELS rows by a block of 16 lanes each. */
static inline void gf_dense_f32_share(const gf_dense_f32 *d, int32_t rows) {
  gf_product mine = gf_share_product(gf_ceildiv(rows, GF_PIXELS), gf_ceildiv(d->lanes, GF_BLOCK));
  while (gf_product_next(&mine)) {
    int32_t at = mine.outer * GF_PIXELS, valid = GF_MIN(GF_PIXELS, rows - at);
    gf_range lanes = {mine.run.begin * GF_BLOCK, GF_MIN(mine.run.end * GF_BLOCK, d->lanes)};
    if (valid == 1) gf_dense_f32_one_row(d, at, lanes);
    else gf_dense_f32_rows(d, at, valid, lanes);
  }
}
#endif
