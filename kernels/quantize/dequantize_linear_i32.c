/* int32 to float32: x * scale. */
#include "gf_dequantize_linear_i32_args.h"
#include "gf_rows.h"

void gf_dequantize_linear_i32(const void *args) {
  const gf_dequantize_linear_i32_args *a = args;
  const int32_t k = gf_row_axis(a->i, a->x_s);
  const gf_axes i = gf_axes_last(a->i, k), x_s = gf_axes_last(a->x_s, k), c_s = gf_axes_last(a->scale_s, k), y_s = gf_axes_last(a->y_s, k);
  const int32_t xs = x_s.of[3], cs = c_s.of[3], ys = y_s.of[3];
  gf_rows r = gf_rows_share(i.of);
  while (gf_rows_next(&r)) {
    const int32_t *x = a->x + gf_row_offset(&r, x_s.of);
    const float *scale = a->scale + gf_row_offset(&r, c_s.of);
    float *y = a->y + gf_row_offset(&r, y_s.of);
    for (int32_t j = r.begin; j < r.end; j++) y[j * ys] = (float)x[j * xs] * scale[j * cs];
  }
}
