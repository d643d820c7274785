/* uint8 to int8, the zero point less 128. */
#include "gf_flip_sign_u8_args.h"
#include "gf_rows.h"

static inline void row(const gf_flip_sign_u8_args *t, const uint8_t *x, int32_t xs, int8_t *y, int32_t ys, int32_t n) {
  (void)t;
  GF_INDEPENDENT
  for (int32_t j = 0; j < n; j++) y[j * ys] = (int8_t)(x[j * xs] - 128);
}

void gf_flip_sign_u8(const void *args) {
  const gf_flip_sign_u8_args *a = args;
  const int32_t k = gf_row_axis(a->i, a->x_s);
  const gf_axes i = gf_axes_last(a->i, k), x_s = gf_axes_last(a->x_s, k), y_s = gf_axes_last(a->y_s, k);
  const int32_t xs = x_s.of[3], ys = y_s.of[3];
  gf_rows r = gf_rows_share(i.of);
  while (gf_rows_next(&r)) {
    const uint8_t *x = a->x + gf_row_offset(&r, x_s.of) + r.begin * xs;
    int8_t *y = a->y + gf_row_offset(&r, y_s.of) + r.begin * ys;
    if (xs == 1 && ys == 1)
      row(a, x, 1, y, 1, r.end - r.begin);
    else
      row(a, x, xs, y, ys, r.end - r.begin);
  }
}
