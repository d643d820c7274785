/* Any group count; weights [g * k][r][s][c]. */
#include "gf_conv2d_i8_args.h"
#include "gf_conv.h"
#include "gf_requantise.h"
#include "gf_window.h"

typedef gf_conv2d_i8_args call;

/* Sum over the window whose first row and column in image n are h and w. */
static int32_t window(const call *a, int32_t n, int32_t h, int32_t w, int32_t g, int32_t k) {
  gf_range rows = gf_taps(h, a->dilations[0], a->r, a->x_h), columns = gf_taps(w, a->dilations[1], a->s, a->x_w);
  const int8_t *weight = a->weight + (ptrdiff_t)(g * a->k + k) * a->r * a->s * a->c;
  int32_t sum = 0;
  for (int32_t r = rows.begin; r < rows.end; r++) {
    for (int32_t s = columns.begin; s < columns.end; s++) {
      int32_t pixel = (n * a->x_h + h + r * a->dilations[0]) * a->x_w + w + s * a->dilations[1];
      const int8_t *x = a->x + (ptrdiff_t)pixel * a->x_pitch + g * a->c, *tap = weight + (r * a->s + s) * a->c;
      for (int32_t c = 0; c < a->c; c++) sum += (x[c] - a->x_zero) * tap[c];
    }
  }
  return sum;
}

void gf_conv2d_i8(const void *args) {
  const call *a = args;
  gf_result_i8 y = {a->y, a->y_pitch, a->y_line, a->q, {a->bias, a->mul, a->shift, a->y_zero, a->lo, a->hi},
                    {a->addend, a->addend_pitch, a->addend_zero, a->addend_mul, a->sum_mul, a->sum_shift, a->sum_zero, a->sum_lo, a->sum_hi}};
  gf_range mine = gf_share(a->n * a->p * a->q);
  for (int32_t i = mine.begin; i < mine.end; i++) {
    gf_pixel at = gf_pixel_at(i, a->p, a->q);
    int32_t h = at.p * a->strides[0] - a->x_h_before, w = at.q * a->strides[1] - a->x_w_before;
    for (int32_t k = 0; k < a->g * a->k; k++) {
      int32_t sum = window(a, at.n, h, w, k / a->k, k % a->k);
      gf_result_i8_rows(&y, i, k, &sum, 0, 1, 1);
    }
  }
}
