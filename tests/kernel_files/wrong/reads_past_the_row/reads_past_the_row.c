#include "gf_reads_past_the_row_args.h"

/* A neighbour that may lie behind the tile is read. */
void gf_reads_past_the_row(const void *args) {
  const gf_reads_past_the_row_args *a = args;
  gf_range rows = gf_share(a->n);
  for (int32_t n = rows.begin; n < rows.end; n++)
    for (int32_t c = 0; c < a->c; c++) {
      volatile int8_t next = a->x[n * a->c + c + 1];
      (void)next;
      int32_t t = ((int32_t)a->x[n * a->c + c] - a->x_zero) * a->w[c] >> 6;
      a->y[n * a->c + c] = (int8_t)GF_MIN(GF_MAX(t, a->lo), a->hi);
    }
}
