#include "gf_writes_past_the_row_args.h"

/* One element more than the tile has. */
void gf_writes_past_the_row(const void *args) {
  const gf_writes_past_the_row_args *a = args;
  gf_range rows = gf_share(a->n);
  for (int32_t n = rows.begin; n < rows.end; n++)
    for (int32_t c = 0; c < a->c; c++) {
      int32_t t = ((int32_t)a->x[n * a->c + c] - a->x_zero) * a->w[c] >> 6;
      a->y[n * a->c + c] = (int8_t)GF_MIN(GF_MAX(t, a->lo), a->hi);
      if (c + 1 == a->c) a->y[n * a->c + c + 1] = 0;
    }
}
