/* One step of one row of the batch for some units; the includer defines `call` and U_AT, where the tile's units begin. */
#include "gf_recurrent.h"

/* This row's new state for units begin <= j < end of the tile, at step i of the tile. With linear_before_reset 0 they are all of them. */
static void step(const call *c, float *sums, int32_t i, int32_t row, int32_t begin, int32_t end) {
  const int32_t k = c->t_at + i, at = gf_place(i, c->t, c->reverse), n = end - begin, gate = c->v * c->u;
  const float *before = gf_state_before(c->h, c->h0, k, c->n, row, c->v);
  const float *x = c->x + ((ptrdiff_t)at * c->n + row) * 3 * c->u + begin, *r = c->r + begin;
  float *z = sums, *reset = sums + n, *inner = sums + 2 * n, *products = sums + 3 * n;
  float *after = gf_state_after(c->h, k, c->n, row, c->v) + U_AT + begin, *y = c->y + ((ptrdiff_t)at * c->n + row) * c->u + begin;
  for (int32_t j = 0; j < n; j++) {
    z[j] = x[j];
    reset[j] = x[c->u + j];
    inner[j] = c->b ? c->b[begin + j] : 0.0f;
  }
  if (before) {
    gf_recur(z, before, r, c->u, c->v, n);
    gf_recur(reset, before, r + gate, c->u, c->v, n);
  }
  GF_INDEPENDENT
  for (int32_t j = 0; j < n; j++) {
    z[j] = gf_sigmoidf(z[j]);
    reset[j] = gf_sigmoidf(reset[j]);
  }
  if (before && c->linear_before_reset) gf_recur(inner, before, r + 2 * gate, c->u, c->v, n);
  if (before && !c->linear_before_reset) {
    for (int32_t j = 0; j < n; j++) products[j] = reset[j] * before[j];
    gf_recur(inner, products, r + 2 * gate, c->u, c->v, n);
  }
  for (int32_t j = 0; j < n; j++) {
    const float candidate = gf_tanhf(x[2 * c->u + j] + (c->linear_before_reset ? reset[j] * inner[j] : inner[j]));
    y[j] = after[j] = (1.0f - z[j]) * candidate + (before ? z[j] * before[U_AT + begin + j] : 0.0f);
  }
}
