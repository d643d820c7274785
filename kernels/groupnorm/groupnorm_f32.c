/* Group normalisation, a group at a time: mean, variance, result. */
#include "gf_groupnorm_f32_args.h"
#include "gf_group.h"

void gf_groupnorm_f32(const void *args) {
  const gf_groupnorm_f32_args *a = args;
  const int32_t size = a->k * a->p;
  const gf_range mine = gf_share(a->n * a->g);
  for (int32_t i = mine.begin; i < mine.end; i++) {
    const float *x = a->x + (ptrdiff_t)i * size, mean = gf_sum(x, size) / (float)size;
    const float factor = 1.0f / sqrtf(gf_sum_of_squares(x, size, mean) / (float)size + a->epsilon);
    for (int32_t k = 0; k < a->k; k++) {
      const int32_t channel = i % a->g * a->k + k, row = k * a->p;
      const float gain = a->gamma ? a->gamma[channel] : 1.0f, offset = a->beta ? a->beta[channel] : 0.0f;
      gf_normalise_row(x + row, a->y + (ptrdiff_t)i * size + row, a->p, mean, factor * gain, offset, a->lo, a->hi);
    }
  }
}
