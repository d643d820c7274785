/* b column by column: each result is the product of two rows. */
#include "gf_batch.h"
#include "gf_matmul_f32_nt_args.h"
#include "gf_rows.h"

typedef gf_matmul_f32_nt_args call;

/* Sums GF_LANES partial products side by side, then the ragged rest. */
static float dot(const float *a, const float *b, int32_t n) {
  gf_vf32 lanes = {0};
  float sum = 0;
  int32_t k = 0;
  for (; k + GF_LANES <= n; k += GF_LANES) lanes += *(const gf_vf32_u *)(a + k) * *(const gf_vf32_u *)(b + k);
  for (int i = 0; i < GF_LANES; i++) sum += lanes[i];
  for (; k < n; k++) sum += a[k] * b[k];
  return sum;
}

void gf_matmul_f32_nt(const void *args) {
  const call *c = args;
  gf_range mine = gf_share(c->z[0] * c->z[1] * c->m);
  for (int32_t i = mine.begin; i < mine.end; i++) {
    gf_batch_row row = gf_batch_row_at(i, c->z[1], c->m);
    const float *a = c->a + gf_batch_offset(row, c->a_s) + (ptrdiff_t)row.m * c->k, *b = c->b + gf_batch_offset(row, c->b_s);
    float *y = c->y + gf_batch_offset(row, c->y_s) + (ptrdiff_t)row.m * c->j;
    for (int32_t j = 0; j < c->j; j++) {
      float sum = dot(a, b + (ptrdiff_t)j * c->k, c->k);
      y[j] = gf_clampf(sum, c->lo, c->hi);
    }
  }
}
