/* The greatest or least values of each row, kept sorted while the row is read. */
#include "gf_topk_f32_args.h"

static int better(const gf_topk_f32_args *a, float v, float than) { return a->largest ? v > than : v < than; }

static void row(const gf_topk_f32_args *a, const float *x, float *values, int64_t *indices) {
  int32_t held = 0;
  for (int32_t j = 0; j < a->d; j++) {
    if (held == a->k && !better(a, x[j], values[held - 1])) continue;
    int32_t at = held < a->k ? held++ : held - 1;
    for (; at > 0 && better(a, x[j], values[at - 1]); at--) {
      values[at] = values[at - 1];
      indices[at] = indices[at - 1];
    }
    values[at] = x[j];
    indices[at] = j;
  }
}

void gf_topk_f32(const void *args) {
  const gf_topk_f32_args *a = args;
  const gf_range mine = gf_share(a->b);
  for (int32_t b = mine.begin; b < mine.end; b++) row(a, a->x + b * a->d, a->values + b * a->k, a->indices + b * a->k);
}
