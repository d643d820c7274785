/* Weights [r][s][g * c][k]. Each output pixel gathers the taps whose input pixel lies on the stride. */
#include "gf_conv_transpose_f32_args.h"
#include "source.h"

typedef gf_conv_transpose_f32_args call;

/* One tap of every group. */
static void add_tap(const call *a, float *y, const float *x, const float *weight) {
  for (int32_t g = 0; g < a->g; g++, y += a->k) {
    for (int32_t c = 0; c < a->c; c++, x++, weight += a->k) {
      for (int32_t k = 0; k < a->k; k++) y[k] += *x * weight[k];
    }
  }
}

static void add_taps(const call *a, gf_pixel at, float *y) {
  const int32_t channels = a->g * a->c;
  for (int32_t r = 0; r < a->r; r++) {
    int32_t h = source(a->p_at + at.p + a->pads[0], r * a->dilations[0], a->strides[0], a->x_h_at, a->x_h);
    for (int32_t s = 0; h >= 0 && s < a->s; s++) {
      int32_t w = source(a->q_at + at.q + a->pads[1], s * a->dilations[1], a->strides[1], a->x_w_at, a->x_w);
      if (w < 0) continue;
      add_tap(a, y, a->x + (ptrdiff_t)((at.n * a->x_h + h) * a->x_w + w) * channels, a->weight + (ptrdiff_t)(r * a->s + s) * channels * a->k);
    }
  }
}

void gf_conv_transpose_f32(const void *args) {
  const call *a = args;
  const int32_t outputs = a->g * a->k;
  gf_range mine = gf_share(a->n * a->p * a->q);
  for (int32_t i = mine.begin; i < mine.end; i++) {
    float *y = a->y + (ptrdiff_t)i * outputs;
    for (int32_t k = 0; k < outputs; k++) y[k] = 0;
    add_taps(a, gf_pixel_at(i, a->p, a->q), y);
    gf_store_f32(y, y, a->bias, outputs, a->lo, a->hi);
  }
}
