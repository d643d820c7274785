/* Input channels split over calls, partial sums in L1: [n][p][q][k]; weights [c][k]. */
#include "gf_pointwise_i8_acc_args.h"
#include "gf_requantise.h"

void gf_pointwise_i8_acc(const void *args) {
  const gf_pointwise_i8_acc_args *a = args;
  gf_requant by = {a->bias, a->mul, a->shift, a->y_zero, a->lo, a->hi};
  gf_range mine = gf_share(a->n * a->p * a->q);
  for (int32_t i = mine.begin; i < mine.end; i++) {
    int32_t *sums = a->acc + (ptrdiff_t)i * a->k;
    for (int32_t k = 0; a->first && k < a->k; k++) sums[k] = 0;
    for (int32_t c = 0; c < a->c; c++) {
      const int32_t x = a->x[i * a->c + c] - a->x_zero;
      const int8_t *weight = a->weight + (ptrdiff_t)c * a->k;
      for (int32_t k = 0; k < a->k; k++) sums[k] += x * weight[k];
    }
    if (a->last) gf_requantise_rows(a->y + (ptrdiff_t)i * a->k, 0, sums, 0, 1, a->k, &by);
  }
}
