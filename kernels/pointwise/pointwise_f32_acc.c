/* Input channels split over calls, partial sums in L1: [n][p][q][k]; weights [k / 16][c][16]. */
#include "gf_pointwise_f32_acc_args.h"
#include "gf_dense_f32.h"

void gf_pointwise_f32_acc(const void *args) {
  const gf_pointwise_f32_acc_args *a = args;
  gf_dense_f32 d = {a->x, a->weight, a->bias, a->y, a->c, a->k, a->x_pitch, a->y_pitch, a->lo, a->hi, a->acc, a->first, a->last};
  gf_range lanes = {0, a->k};
  gf_dense_f32_box(&d, gf_share_step(a->n * a->p * a->q, GF_PIXELS), lanes);
}
