#include "gf_pitch_ignored_args.h"

/* Rows of x are taken for dense, where they lie a pitch apart. */
void gf_pitch_ignored(const void *args) {
  const gf_pitch_ignored_args *a = args;
  gf_range rows = gf_share(a->n);
  for (int32_t n = rows.begin; n < rows.end; n++)
    for (int32_t c = 0; c < a->c; c++) a->y[n * a->y_pitch + c] = (int8_t)~a->x[n * a->c + c];
}
