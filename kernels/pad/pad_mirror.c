/* A frame made of the tensor's own values: edge, reflect or wrap over the last two axes. */
#include "gf_pad_mirror_args.h"

static int32_t source(int32_t i, int32_t extent, int32_t mode) {
  if (mode == 1) i = i < 0 ? -i : i >= extent ? 2 * (extent - 1) - i : i;
  if (mode == 2) i = gf_mod(i, extent);
  return GF_CLAMP(i, 0, extent - 1);
}

static void copy_line(const gf_pad_mirror_args *a, const uint8_t *x, uint8_t *y) {
  for (int32_t q = 0; q < a->q; q++) {
    const uint8_t *from = x + source(a->q_at + q - a->pads[1], a->x_w, a->mode) * a->x_s[3] * a->T_bytes;
    for (int32_t b = 0; b < a->T_bytes; b++) y[q * a->y_s[3] * a->T_bytes + b] = from[b];
  }
}

void gf_pad_mirror(const void *args) {
  const gf_pad_mirror_args *a = args;
  const gf_range mine = gf_share(a->n * a->c * a->p);
  for (int32_t i = mine.begin; i < mine.end; i++) {
    const int32_t p = i % a->p, c = i / a->p % a->c, n = i / a->p / a->c;
    const int32_t h = source(a->p_at + p - a->pads[0], a->x_h, a->mode);
    copy_line(a, (const uint8_t *)a->x + (n * a->x_s[0] + c * a->x_s[1] + h * a->x_s[2]) * a->T_bytes,
              (uint8_t *)a->y + (n * a->y_s[0] + c * a->y_s[1] + p * a->y_s[2]) * a->T_bytes);
  }
}
