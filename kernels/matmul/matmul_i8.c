/* b row by row: 16 columns a vector. Ragged columns overlap the block before; fewer than 16 are taken one by one. */
#include "gf_batch.h"
#include "gf_macs.h"
#include "gf_matmul_i8_args.h"
#include "gf_requantise.h"

typedef gf_matmul_i8_args call;

enum { COLUMNS = GF_BLOCKS * GF_BLOCK };

/* One product's matrices, and the requantisation of COLUMNS columns, all alike. */
typedef struct {
  const int8_t *a, *b;
  int8_t *y;
  const gf_requant *by;
} product;

/* Rows from m, the last of the `valid` ones repeated to fill the registers, by `blocks` blocks of columns. */
GF_INLINE void tile(const call *c, const product *t, int32_t m, int32_t valid, int32_t j, const int rows, const int blocks) {
  gf_vi32 acc[GF_PIXELS * GF_BLOCKS * GF_BLOCK_VECTORS] = {{0}};
  const int8_t *a[GF_PIXELS];
  for (int i = 0; i < rows; i++) a[i] = t->a + (ptrdiff_t)(m + GF_MIN(i, valid - 1)) * c->k;
  gf_macs_i8(acc, rows, blocks, a, c->a_zero, t->b + j, c->b_zero, GF_BLOCK, c->j, c->k);
  gf_requantise_rows(t->y + (ptrdiff_t)m * c->j + j, c->j, (const int32_t *)acc, blocks * GF_BLOCK, valid, blocks * GF_BLOCK, t->by);
}

static void narrow(const call *c, const product *t, int32_t m, int32_t valid) {
  for (int32_t i = m; i < m + valid; i++) {
    for (int32_t j = 0; j < c->j; j++) {
      int32_t sum = 0;
      for (int32_t k = 0; k < c->k; k++) sum += (t->a[i * c->k + k] - c->a_zero) * (t->b[k * c->j + j] - c->b_zero);
      gf_requantise_rows(t->y + (ptrdiff_t)i * c->j + j, 0, &sum, 0, 1, 1, t->by);
    }
  }
}

static void rows(const call *c, const product *t, int32_t m, int32_t valid) {
  int32_t j = 0;
  if (c->j < GF_BLOCK) {
    narrow(c, t, m, valid);
    return;
  }
  for (; j + GF_BLOCKS * GF_BLOCK <= c->j; j += GF_BLOCKS * GF_BLOCK) tile(c, t, m, valid, j, GF_PIXELS, GF_BLOCKS);
  for (; j < c->j; j += GF_BLOCK) tile(c, t, m, valid, GF_MIN(j, c->j - GF_BLOCK), GF_PIXELS, 1);
}

void gf_matmul_i8(const void *args) {
  const call *c = args;
  int32_t bias[COLUMNS] = {0}, mul[COLUMNS];
  uint8_t shift[COLUMNS];
  gf_requant by = {bias, mul, shift, c->y_zero, c->lo, c->hi};
  for (int i = 0; i < COLUMNS; i++) {
    mul[i] = c->mul;
    shift[i] = c->shift;
  }
  gf_range mine = gf_share(c->z[0] * c->z[1] * c->m);
  for (int32_t at = mine.begin; at < mine.end;) {
    gf_batch_row row = gf_batch_row_at(at, c->z[1], c->m);
    product t = {c->a + gf_batch_offset(row, c->a_s), c->b + gf_batch_offset(row, c->b_s), c->y + gf_batch_offset(row, c->y_s), &by};
    int32_t valid = GF_MIN(GF_PIXELS, GF_MIN(mine.end - at, c->m - row.m));
    rows(c, &t, row.m, valid);
    at += valid;
  }
}
