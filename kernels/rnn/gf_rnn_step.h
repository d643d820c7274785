/* One step of one row of the batch for some units; the includer defines `call` and U_AT, where the tile's units begin. */
#include "gf_recurrent.h"

/* This row's new state for units begin <= j < end of the tile, at step i of the tile. */
static void step(const call *c, float *sums, int32_t i, int32_t row, int32_t begin, int32_t end) {
  const int32_t k = c->t_at + i, at = gf_place(i, c->t, c->reverse), n = end - begin;
  const float *before = gf_state_before(c->h, c->h0, k, c->n, row, c->v), *x = c->x + ((ptrdiff_t)at * c->n + row) * c->u + begin;
  float *after = gf_state_after(c->h, k, c->n, row, c->v) + U_AT + begin, *y = c->y + ((ptrdiff_t)at * c->n + row) * c->u + begin;
  for (int32_t j = 0; j < n; j++) sums[j] = x[j];
  if (before) gf_recur(sums, before, c->r + begin, c->u, c->v, n);
  for (int32_t j = 0; j < n; j++) y[j] = after[j] = c->relu ? GF_MAX(sums[j], 0.0f) : gf_tanhf(sums[j]);
}
