/* One step of one row of the batch for some units; the includer defines `call` and U_AT, where the tile's units begin. */
#include "gf_recurrent.h"

/* This row's new states for units begin <= j < end of the tile, at step i of the tile. h's third part holds the cells. */
static void step(const call *c, float *sums, int32_t i, int32_t row, int32_t begin, int32_t end) {
  const int32_t k = c->t_at + i, at = gf_place(i, c->t, c->reverse), n = end - begin;
  const float *before = gf_state_before(c->h, c->h0, k, c->n, row, c->v), *x = c->x + ((ptrdiff_t)at * c->n + row) * 4 * c->u + begin;
  float *after = gf_state_after(c->h, k, c->n, row, c->v) + U_AT + begin, *y = c->y + ((ptrdiff_t)at * c->n + row) * c->u + begin;
  float *cell = c->h + ((ptrdiff_t)2 * c->n + row) * c->v + U_AT + begin, *last = c->c + (ptrdiff_t)row * c->u + begin;
  float *in = sums, *out = sums + n, *forget = sums + 2 * n, *candidate = sums + 3 * n;
  for (int32_t gate = 0; gate < 4; gate++) {
    for (int32_t j = 0; j < n; j++) sums[gate * n + j] = x[gate * c->u + j];
    if (before) gf_recur(sums + gate * n, before, c->r + (ptrdiff_t)gate * c->v * c->u + begin, c->u, c->v, n);
  }
  if (k == 0)
    for (int32_t j = 0; j < n; j++) cell[j] = c->c0 ? c->c0[(ptrdiff_t)row * c->u + begin + j] : 0.0f;
  for (int32_t j = 0; j < n; j++) {
    cell[j] = gf_sigmoidf(forget[j]) * cell[j] + gf_sigmoidf(in[j]) * gf_tanhf(candidate[j]);
    last[j] = cell[j];
    y[j] = after[j] = gf_sigmoidf(out[j]) * gf_tanhf(cell[j]);
  }
}
