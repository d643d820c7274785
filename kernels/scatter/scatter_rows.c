/* Rows overwritten at a list of indices: each core writes those of its own rows. */
#include <string.h>
#include "gf_scatter.h"
#include "gf_scatter_rows_args.h"

void gf_scatter_rows(const void *args) {
  const gf_scatter_rows_args *a = args;
  const gf_range mine = gf_share(a->r);
  const size_t row = (size_t)(a->b * a->T_bytes);
  if (mine.begin == mine.end) return;
  memcpy((uint8_t *)a->y + (size_t)mine.begin * row, (const uint8_t *)a->x + (size_t)mine.begin * row, (size_t)(mine.end - mine.begin) * row);
  for (int32_t m = 0; m < a->indices_m; m++) {
    const int32_t at = gf_scatter_row(a->indices, a->I_bytes, m * a->indices_q, a->extents, a->indices_q) - a->r_at;
    if (at >= mine.begin && at < mine.end) memcpy((uint8_t *)a->y + (size_t)at * row, (const uint8_t *)a->updates + (size_t)m * row, row);
  }
}
