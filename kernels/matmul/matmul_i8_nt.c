/* b column by column: each result is the product of two rows. */
#include "gf_batch.h"
#include "gf_matmul_i8_nt_args.h"

typedef gf_matmul_i8_nt_args call;

static int32_t dot(const call *c, const int8_t *a, const int8_t *b) {
  int32_t sum = 0;
  for (int32_t k = 0; k < c->k; k++) sum += (a[k] - c->a_zero) * (b[k] - c->b_zero);
  return sum;
}

void gf_matmul_i8_nt(const void *args) {
  const call *c = args;
  gf_range mine = gf_share(c->z[0] * c->z[1] * c->m);
  for (int32_t i = mine.begin; i < mine.end; i++) {
    gf_batch_row row = gf_batch_row_at(i, c->z[1], c->m);
    const int8_t *a = c->a + gf_batch_offset(row, c->a_s) + (ptrdiff_t)row.m * c->k, *b = c->b + gf_batch_offset(row, c->b_s);
    int8_t *y = c->y + gf_batch_offset(row, c->y_s) + (ptrdiff_t)row.m * c->j;
    for (int32_t j = 0; j < c->j; j++) {
      y[j] = gf_saturate(gf_requantise(dot(c, a, b + (ptrdiff_t)j * c->k), c->mul, c->shift), c->y_zero, c->lo, c->hi);
    }
  }
}
