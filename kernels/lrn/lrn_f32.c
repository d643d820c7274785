/* Local response normalisation across the channels of each place. */
#include "gf_lrn_f32_args.h"

static float squares(const gf_lrn_f32_args *a, const float *x, int32_t c) {
  const int32_t before = (a->size - 1) / 2, begin = GF_MAX(c - before, 0), end = GF_MIN(c - before + a->size, a->c);
  float sum = 0;
  for (int32_t k = begin; k < end; k++) sum += x[k * a->l] * x[k * a->l];
  return sum;
}

void gf_lrn_f32(const void *args) {
  const gf_lrn_f32_args *a = args;
  const gf_range mine = gf_share(a->l);
  const float each = a->alpha / (float)a->size;
  for (int32_t n = 0; n < a->n; n++) {
    const float *x = a->x + n * a->c * a->l;
    float *y = a->y + n * a->c * a->l;
    for (int32_t c = 0; c < a->c; c++)
      for (int32_t l = mine.begin; l < mine.end; l++)
        y[c * a->l + l] = x[c * a->l + l] / powf(a->bias + each * squares(a, x + l, c), a->beta);
  }
}
