/* Maximum over a window; what lies outside x takes no part. */
#include "gf_maxpool_i8_args.h"
#include "gf_window.h"

static void pixel(const gf_maxpool_i8_args *a, const int8_t *x, int32_t p, int32_t q, int8_t *restrict y) {
  const int32_t h0 = p * a->strides[0] - a->x_h_before, w0 = q * a->strides[1] - a->x_w_before, channels = a->c;
  const gf_range rows = gf_taps(h0, a->dilations[0], a->kernel[0], a->x_h);
  const gf_range columns = gf_taps(w0, a->dilations[1], a->kernel[1], a->x_w);
  for (int32_t c = 0; c < channels; c++) y[c] = INT8_MIN;
  for (int32_t r = rows.begin; r < rows.end; r++)
    for (int32_t s = columns.begin; s < columns.end; s++) {
      const int8_t *restrict v = x + ((h0 + r * a->dilations[0]) * a->x_w + w0 + s * a->dilations[1]) * a->x_pitch;
      for (int32_t c = 0; c < channels; c++) y[c] = v[c] > y[c] ? v[c] : y[c];
    }
  const int8_t lo = a->lo, hi = a->hi;
  if (lo > INT8_MIN || hi < INT8_MAX)
    for (int32_t c = 0; c < channels; c++) y[c] = GF_CLAMP(y[c], lo, hi);
}

void gf_maxpool_i8(const void *args) {
  const gf_maxpool_i8_args *a = args;
  const gf_range mine = gf_share(a->p * a->q);
  for (int32_t n = 0; n < a->n; n++)
    for (int32_t i = mine.begin; i < mine.end; i++)
      pixel(a, a->x + n * a->x_h * a->x_w * a->x_pitch, i / a->q, i % a->q, a->y + (n * a->p * a->q + i) * a->y_pitch);
}
