/* Group normalisation of groups that do not fit L1: pass 0 joins the statistics of their tiles, pass 1 applies them. */
#include "gf_groupnorm_f32_passes_args.h"
#include "gf_group.h"

/* The statistics of these elements join those so far (Chan, Golub, LeVeque): no difference of large sums. */
static void join(float *statistics, const float *x, int32_t n, int32_t first) {
  const float own = gf_sum(x, n) / (float)n, squares = gf_sum_of_squares(x, n, own), before = first ? 0.0f : statistics[2];
  const float all = before + (float)n, gap = own - (first ? own : statistics[0]);
  statistics[0] = (first ? own : statistics[0]) + gap * ((float)n / all);
  statistics[1] = (first ? 0.0f : statistics[1]) + squares + gap * gap * (before * (float)n / all);
  statistics[2] = all;
}

static void apply(const gf_groupnorm_f32_passes_args *a, const float *statistics, int32_t i, const float *x) {
  const float factor = 1.0f / sqrtf(statistics[1] / statistics[2] + a->epsilon);
  for (int32_t k = 0; k < a->k; k++) {
    const int32_t channel = i % a->g * a->k + k;
    const float gain = a->gamma ? a->gamma[channel] : 1.0f, offset = a->beta ? a->beta[channel] : 0.0f;
    float *y = a->y + ((ptrdiff_t)i * a->k + k) * a->p;
    gf_normalise_row(x + (ptrdiff_t)k * a->p, y, a->p, statistics[0], factor * gain, offset, a->lo, a->hi);
  }
}

void gf_groupnorm_f32_passes(const void *args) {
  const gf_groupnorm_f32_passes_args *a = args;
  const gf_range mine = gf_share(a->n * a->g);
  for (int32_t i = mine.begin; i < mine.end; i++) {
    const float *x = a->x + (ptrdiff_t)i * a->k * a->p;
    float *statistics = a->statistics + (ptrdiff_t)i * 3;
    if (a->s_at == 0) join(statistics, x, a->k * a->p, a->first);
    apply(a, statistics, i, x); /* in pass 0 with what is known so far: the tile is stored either way, and once more in pass 1 */
  }
}
