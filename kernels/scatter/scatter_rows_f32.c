/* Rows combined with others at a list of indices: each core writes those of its own rows. */
#include <string.h>
#include "gf_scatter.h"
#include "gf_scatter_rows_f32_args.h"

static float combined(int32_t mode, float v, float u) {
  if (mode == 1) return v + u;
  if (mode == 2) return v * u;
  if (mode == 3) return u < v ? u : v;
  return u > v ? u : v;
}

void gf_scatter_rows_f32(const void *args) {
  const gf_scatter_rows_f32_args *a = args;
  const gf_range mine = gf_share(a->r);
  if (mine.begin == mine.end) return;
  memcpy(a->y + mine.begin * a->b, a->x + mine.begin * a->b, (size_t)((mine.end - mine.begin) * a->b) * sizeof *a->y);
  for (int32_t m = 0; m < a->indices_m; m++) {
    const int32_t at = gf_scatter_row(a->indices, a->I_bytes, m * a->indices_q, a->extents, a->indices_q) - a->r_at;
    if (at < mine.begin || at >= mine.end) continue;
    for (int32_t b = 0; b < a->b; b++) a->y[at * a->b + b] = combined(a->mode, a->y[at * a->b + b], a->updates[m * a->b + b]);
  }
}
