/* Running integer sums along the middle axis, modulo 2^32 or 2^64: the cores share the lines. */
#include "gf_cumsum_int_args.h"

static uint64_t load(const gf_cumsum_int_args *c, int32_t at) {
  return c->T_bytes == 8 ? (uint64_t)((const int64_t *)c->x)[at] : (uint64_t)(int64_t)((const int32_t *)c->x)[at];
}

static void store(const gf_cumsum_int_args *c, int32_t at, uint64_t v) {
  if (c->T_bytes == 8)
    ((uint64_t *)c->y)[at] = v;
  else
    ((uint32_t *)c->y)[at] = (uint32_t)v;
}

static void line(const gf_cumsum_int_args *c, int32_t start) {
  uint64_t sum = 0;
  for (int32_t k = 0; k < c->d; k++) {
    const int32_t at = start + (c->reverse ? c->d - 1 - k : k) * c->b;
    const uint64_t v = load(c, at);
    store(c, at, c->exclusive ? sum : sum + v);
    sum += v;
  }
}

void gf_cumsum_int(const void *args) {
  const gf_cumsum_int_args *c = args;
  const gf_range mine = gf_share(c->a * c->b);
  for (int32_t i = mine.begin; i < mine.end; i++) line(c, i / c->b * c->d * c->b + i % c->b);
}
