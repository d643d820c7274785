/* Average over a window; what lies outside x adds nothing, and counts only as padding with count_include_pad. */
#include "gf_avgpool_i8_args.h"
#include "gf_window.h"

enum { LANES = 32 };

/* Taps of one axis that the average divides by: those inside, or those before the end of the trailing padding. */
static int32_t counted(gf_range inside, int32_t start, int32_t dilation, int32_t taps, int32_t end, int32_t include_pad) {
  return include_pad ? GF_MIN(taps, gf_ceildiv(end - start, dilation)) : inside.end - inside.begin;
}

static void lanes(const gf_avgpool_i8_args *a, const int8_t *x, int32_t h0, int32_t w0, int32_t n, int8_t *restrict y) {
  const gf_range rows = gf_taps(h0, a->dilations[0], a->kernel[0], a->x_h);
  const gf_range columns = gf_taps(w0, a->dilations[1], a->kernel[1], a->x_w);
  int32_t sum[LANES] = {0};
  for (int32_t r = rows.begin; r < rows.end; r++)
    for (int32_t s = columns.begin; s < columns.end; s++) {
      const int8_t *v = x + ((h0 + r * a->dilations[0]) * a->x_w + w0 + s * a->dilations[1]) * a->x_pitch;
      for (int32_t c = 0; c < n; c++) sum[c] += v[c];
    }
  const int32_t count = counted(rows, h0, a->dilations[0], a->kernel[0], a->x_h + a->pads[2], a->count_include_pad) *
                        counted(columns, w0, a->dilations[1], a->kernel[1], a->x_w + a->pads[3], a->count_include_pad);
  const int32_t inside = (rows.end - rows.begin) * (columns.end - columns.begin);
  const int32_t mul = a->mul[count - 1];
  const int shift = a->shift[count - 1];
  for (int32_t c = 0; c < n; c++)
    y[c] = gf_saturate(gf_requantise(sum[c] - inside * a->x_zero, mul, shift), a->y_zero, a->lo, a->hi);
}

void gf_avgpool_i8(const void *args) {
  const gf_avgpool_i8_args *a = args;
  const gf_range mine = gf_share(a->p * a->q);
  for (int32_t n = 0; n < a->n; n++)
    for (int32_t i = mine.begin; i < mine.end; i++) {
      const int32_t h0 = i / a->q * a->strides[0] - a->x_h_before, w0 = i % a->q * a->strides[1] - a->x_w_before;
      for (int32_t c = 0; c < a->c; c += LANES)
        lanes(a, a->x + n * a->x_h * a->x_w * a->x_pitch + c, h0, w0, GF_MIN(LANES, a->c - c), a->y + (n * a->p * a->q + i) * a->y_pitch + c);
    }
}
