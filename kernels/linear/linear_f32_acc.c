/* Inputs split over calls, partial sums in L1: [m][j]; weights [k][j]. */
#include "gf_linear_f32_acc_args.h"
#include "gf_macs.h"

void gf_linear_f32_acc(const void *args) {
  const gf_linear_f32_acc_args *a = args;
  gf_range mine = gf_share_step(a->j, GF_BLOCK);
  for (int32_t m = 0; m < a->m; m++) {
    float *sums = a->acc + (ptrdiff_t)m * a->j;
    for (int32_t j = mine.begin; a->first && j < mine.end; j++) sums[j] = 0;
    for (int32_t k = 0; k < a->k; k++) {
      const float x = a->x[m * a->k + k], *weight = a->weight + (ptrdiff_t)k * a->j;
      for (int32_t j = mine.begin; j < mine.end; j++) sums[j] += x * weight[j];
    }
    if (!a->last) continue;
    gf_store_f32(a->y + (ptrdiff_t)m * a->j + mine.begin, sums + mine.begin, a->bias + mine.begin, mine.end - mine.begin, a->lo, a->hi);
  }
}
