/* A frame of a constant, in any storage order. */
#include "gf_pad_f32_args.h"

/* One line of q elements; begin..end of it come from x. */
static void line(float *y, int32_t ys, const float *x, int32_t xs, int32_t q, gf_range from, float value) {
  for (int32_t j = 0; j < from.begin; j++) y[j * ys] = value;
  for (int32_t j = from.begin; j < from.end; j++) y[j * ys] = x[(j - from.begin) * xs];
  for (int32_t j = from.end; j < q; j++) y[j * ys] = value;
}

void gf_pad_f32(const void *args) {
  const gf_pad_f32_args *a = args;
  const gf_range mine = gf_share(a->m * a->k * a->p);
  /* A tile that lies wholly in the frame has more missing in front than it is long. */
  const gf_range inside = {GF_MIN(a->x_w_before, a->q), GF_MIN(a->x_w_before + a->x_w, a->q)}, outside = {a->q, a->q};
  for (int32_t i = mine.begin; i < mine.end; i++) {
    const int32_t p = i % a->p, k = i / a->p % a->k, m = i / a->p / a->k;
    const int32_t h = p - a->x_h_before, c = k - a->x_c_before, n = m - a->x_n_before;
    const int is_inside = h >= 0 && h < a->x_h && c >= 0 && c < a->x_c && n >= 0 && n < a->x_n;
    const float *x = is_inside ? a->x + n * a->x_s[0] + c * a->x_s[1] + h * a->x_s[2] : a->x;
    line(a->y + m * a->y_s[0] + k * a->y_s[1] + p * a->y_s[2], a->y_s[3], x, a->x_s[3], a->q, is_inside ? inside : outside, a->value);
  }
}
