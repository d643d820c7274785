/* k split over calls, partial sums in L1: [z][m][j]. */
#include "gf_batch.h"
#include "gf_matmul_f32_acc_args.h"
#include "gf_rows.h"

typedef gf_matmul_f32_acc_args call;

static void add(const call *c, float *sums, const float *a, const float *b) {
  for (int32_t k = 0; k < c->k; k++) {
    for (int32_t j = 0; j < c->j; j++) sums[j] += a[k] * b[(ptrdiff_t)k * c->j + j];
  }
}

void gf_matmul_f32_acc(const void *args) {
  const call *c = args;
  gf_range mine = gf_share(c->z[0] * c->z[1] * c->m);
  for (int32_t i = mine.begin; i < mine.end; i++) {
    gf_batch_row row = gf_batch_row_at(i, c->z[1], c->m);
    float *sums = c->acc + (ptrdiff_t)i * c->j, *y = c->y + gf_batch_offset(row, c->y_s) + (ptrdiff_t)row.m * c->j;
    for (int32_t j = 0; c->first && j < c->j; j++) sums[j] = 0;
    add(c, sums, c->a + gf_batch_offset(row, c->a_s) + (ptrdiff_t)row.m * c->k, c->b + gf_batch_offset(row, c->b_s));
    for (int32_t j = 0; c->last && j < c->j; j++) y[j] = gf_clampf(sums[j], c->lo, c->hi);
  }
}
