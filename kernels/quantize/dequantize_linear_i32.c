/* int32 to float32: x * scale. */
#include "gf_dequantize_linear_i32_args.h"
#include "gf_rows.h"

void gf_dequantize_linear_i32(const void *args) {
  const gf_dequantize_linear_i32_args *a = args;
  const int32_t xs = a->x_s[3], cs = a->scale_s[3], ys = a->y_s[3];
  gf_rows r = gf_rows_share(a->i);
  while (gf_rows_next(&r)) {
    const int32_t *x = a->x + gf_row_offset(&r, a->x_s);
    const float *scale = a->scale + gf_row_offset(&r, a->scale_s);
    float *y = a->y + gf_row_offset(&r, a->y_s);
    for (int32_t j = r.begin; j < r.end; j++) y[j * ys] = (float)x[j * xs] * scale[j * cs];
  }
}
