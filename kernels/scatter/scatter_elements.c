/* Elements overwritten along the middle axis: each core writes its own part of the axis. */
#include <string.h>
#include "gf_scatter.h"
#include "gf_scatter_elements_args.h"

typedef gf_scatter_elements_args call;

/* Line a of x: part `mine` of the axis, then what the indices put there. */
static void line(const call *c, int32_t a, gf_range mine) {
  const size_t bytes = (size_t)c->T_bytes;
  const int32_t first = (a * c->d + mine.begin) * c->b;
  memcpy((uint8_t *)c->y + (size_t)first * bytes, (const uint8_t *)c->x + (size_t)first * bytes, (size_t)((mine.end - mine.begin) * c->b) * bytes);
  for (int32_t i = 0; i < c->indices_k * c->b; i++) {
    const int32_t from = a * c->indices_k * c->b + i;
    const int32_t at = gf_scatter_row(c->indices, c->I_bytes, from, &c->extent, 1) - c->d_at;
    if (at < mine.begin || at >= mine.end) continue;
    memcpy((uint8_t *)c->y + (size_t)((a * c->d + at) * c->b + i % c->b) * bytes, (const uint8_t *)c->updates + (size_t)from * bytes, bytes);
  }
}

void gf_scatter_elements(const void *args) {
  const call *c = args;
  const gf_range mine = gf_share(c->d);
  for (int32_t a = 0; a < c->a && mine.begin < mine.end; a++) line(c, a, mine);
}
