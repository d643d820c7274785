/* Bilinear: four neighbours, their weights in integers over rows[2] * columns[2]. */
#include "gf_resize_linear_i8_args.h"

/* The two source lines of an output line within the L1 box, and their weights. */
typedef struct {
  int32_t line[2], weight[2];
} taps;

static taps source(const int32_t *t, int32_t i, int32_t at, int32_t extent) {
  const int32_t position = t[0] * i + t[1], low = gf_floordiv(position, t[2]), upper = gf_mod(position, t[2]);
  taps r = {{GF_CLAMP(low - at, 0, extent - 1), GF_CLAMP(low + 1 - at, 0, extent - 1)}, {t[2] - upper, upper}};
  return r;
}

static void pixel(const gf_resize_linear_i8_args *a, const int8_t *x, taps h, taps w, int8_t *restrict y) {
  const int8_t *v00 = x + (h.line[0] * a->x_w + w.line[0]) * a->x_pitch, *v01 = x + (h.line[0] * a->x_w + w.line[1]) * a->x_pitch;
  const int8_t *v10 = x + (h.line[1] * a->x_w + w.line[0]) * a->x_pitch, *v11 = x + (h.line[1] * a->x_w + w.line[1]) * a->x_pitch;
  const int32_t w00 = h.weight[0] * w.weight[0], w01 = h.weight[0] * w.weight[1];
  const int32_t w10 = h.weight[1] * w.weight[0], w11 = h.weight[1] * w.weight[1], zero = a->x_zero;
  for (int32_t c = 0; c < a->c; c++) {
    const int32_t sum = (v00[c] - zero) * w00 + (v01[c] - zero) * w01 + (v10[c] - zero) * w10 + (v11[c] - zero) * w11;
    y[c] = gf_saturate(gf_requantise(sum, a->mul, a->shift), a->y_zero, a->lo, a->hi);
  }
}

void gf_resize_linear_i8(const void *args) {
  const gf_resize_linear_i8_args *a = args;
  const gf_range mine = gf_share(a->p * a->q);
  for (int32_t n = 0; n < a->n; n++)
    for (int32_t i = mine.begin; i < mine.end; i++) {
      const taps h = source(a->rows, a->p_at + i / a->q, a->x_h_at, a->x_h);
      const taps w = source(a->columns, a->q_at + i % a->q, a->x_w_at, a->x_w);
      pixel(a, a->x + n * a->x_h * a->x_w * a->x_pitch, h, w, a->y + (n * a->p * a->q + i) * a->y_pitch);
    }
}
