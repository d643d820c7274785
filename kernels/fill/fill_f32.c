/* A tensor of one value, in any storage order. */
#include "gf_fill_f32_args.h"
#include "gf_rows.h"

void gf_fill_f32(const void *args) {
  const gf_fill_f32_args *a = args;
  const int32_t k = gf_row_axis(a->i, a->y_s);
  const gf_axes i = gf_axes_last(a->i, k), s = gf_axes_last(a->y_s, k);
  const float value = a->value;
  gf_rows r = gf_rows_share(i.of);
  while (gf_rows_next(&r)) {
    float *y = a->y + gf_row_offset(&r, s.of);
    for (int32_t j = r.begin; j < r.end; j++) y[j * s.of[3]] = value;
  }
}
