/* Running float sums along the middle axis: the cores share the lines. */
#include "gf_cumsum_f32_args.h"

static void line(const gf_cumsum_f32_args *c, const float *x, float *y) {
  float sum = 0;
  for (int32_t k = 0; k < c->d; k++) {
    const int32_t at = (c->reverse ? c->d - 1 - k : k) * c->b;
    const float v = x[at];
    y[at] = c->exclusive ? sum : sum + v;
    sum += v;
  }
}

void gf_cumsum_f32(const void *args) {
  const gf_cumsum_f32_args *c = args;
  const gf_range mine = gf_share(c->a * c->b);
  for (int32_t i = mine.begin; i < mine.end; i++) {
    const int32_t start = i / c->b * c->d * c->b + i % c->b;
    line(c, c->x + start, c->y + start);
  }
}
