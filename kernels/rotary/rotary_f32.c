/* Rotary embedding of the last axis, a row at a time. */
#include "gf_rotary_f32_args.h"
#include "gf_rows.h"

/* Pair i of a row stands at i * step and `apart` further; the second angle may be one of its own. */
static void turn(const float *x, float *y, const float *cosine, const float *sine, int32_t half, int32_t step, int32_t apart, int32_t second) {
  GF_INDEPENDENT
  for (int32_t i = 0; i < half; i++) {
    const float left = x[i * step], right = x[i * step + apart];
    y[i * step] = left * cosine[i] - right * sine[i];
    y[i * step + apart] = right * cosine[i + second] + left * sine[i + second];
  }
}

void gf_rotary_f32(const void *args) {
  const gf_rotary_f32_args *a = args;
  const int32_t half = a->d / 2, second = a->c == half ? 0 : half;
  const gf_range mine = gf_share(a->b * a->h * a->t);
  for (int32_t row = mine.begin; row < mine.end; row++) {
    const int32_t b = a->cosine_cb == 1 ? 0 : row / (a->h * a->t), h = a->cosine_ch == 1 ? 0 : row / a->t % a->h;
    const int32_t t = a->cosine_ct == 1 ? 0 : row % a->t;
    const ptrdiff_t angle = (((ptrdiff_t)b * a->cosine_ch + h) * a->cosine_ct + t) * a->c;
    const float *x = a->x + (ptrdiff_t)row * a->d;
    turn(x, a->y + (ptrdiff_t)row * a->d, a->cosine + angle, a->sine + angle, half, a->interleaved ? 2 : 1, a->interleaved ? 1 : half, second);
  }
}
