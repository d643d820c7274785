/* Inputs split over calls, partial sums in L1: [m][j]; weights [j / 16][k][16]. */
#include "gf_linear_f32_acc_args.h"
#include "gf_dense_f32.h"

void gf_linear_f32_acc(const void *args) {
  const gf_linear_f32_acc_args *a = args;
  gf_dense_f32 d = {a->x, a->weight, a->bias, a->y, a->k, a->j, a->x_pitch, a->y_pitch, a->lo, a->hi, a->acc, a->first, a->last};
  gf_range rows = {0, a->m};
  gf_dense_f32_box(&d, rows, gf_share_step(a->j, GF_BLOCK));
}
