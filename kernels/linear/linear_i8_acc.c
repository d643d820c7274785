/* Inputs split over calls, partial sums in L1: [m][j]; weights [k][j]. */
#include "gf_linear_i8_acc_args.h"
#include "gf_macs.h"
#include "gf_requantise.h"

void gf_linear_i8_acc(const void *args) {
  const gf_linear_i8_acc_args *a = args;
  gf_range mine = gf_share_step(a->j, GF_BLOCK);
  gf_requant by = {a->bias + mine.begin, a->mul + mine.begin, a->shift + mine.begin, a->y_zero, a->lo, a->hi};
  for (int32_t m = 0; m < a->m; m++) {
    int32_t *sums = a->acc + (ptrdiff_t)m * a->j;
    for (int32_t j = mine.begin; a->first && j < mine.end; j++) sums[j] = 0;
    for (int32_t k = 0; k < a->k; k++) {
      const int32_t x = a->x[m * a->k + k] - a->x_zero;
      const int8_t *weight = a->weight + (ptrdiff_t)k * a->j;
      for (int32_t j = mine.begin; j < mine.end; j++) sums[j] += x * weight[j];
    }
    if (!a->last) continue;
    gf_requantise_rows(a->y + (ptrdiff_t)m * a->j + mine.begin, 0, sums + mine.begin, 0, 1, mine.end - mine.begin, &by);
  }
}
