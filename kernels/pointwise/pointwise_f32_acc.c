/* Input channels split over calls, partial sums in L1: [n][p][q][k]; weights [c][k]. */
#include "gf_pointwise_f32_acc_args.h"
#include "gf_macs.h"

void gf_pointwise_f32_acc(const void *args) {
  const gf_pointwise_f32_acc_args *a = args;
  gf_range mine = gf_share(a->n * a->p * a->q);
  for (int32_t i = mine.begin; i < mine.end; i++) {
    float *sums = a->acc + (ptrdiff_t)i * a->k;
    for (int32_t k = 0; a->first && k < a->k; k++) sums[k] = 0;
    for (int32_t c = 0; c < a->c; c++) {
      const float x = a->x[i * a->c + c], *weight = a->weight + (ptrdiff_t)c * a->k;
      for (int32_t k = 0; k < a->k; k++) sums[k] += x * weight[k];
    }
    if (a->last) gf_store_f32(a->y + (ptrdiff_t)i * a->k, sums, a->bias, a->k, a->lo, a->hi);
  }
}
