/* Nearest neighbour: whole pixels are copied. */
#include <string.h>
#include "gf_resize_nearest_args.h"

/* Source line of output line i within the L1 box that begins at `at`. */
static int32_t source(const int32_t *t, int32_t i, int32_t at, int32_t extent) {
  return GF_CLAMP(gf_floordiv(t[0] * i + t[1], t[2]) - at, 0, extent - 1);
}

void gf_resize_nearest(const void *args) {
  const gf_resize_nearest_args *a = args;
  const gf_range mine = gf_share(a->p * a->q);
  const int32_t bytes = a->c * a->T_bytes;
  for (int32_t n = 0; n < a->n; n++)
    for (int32_t i = mine.begin; i < mine.end; i++) {
      const int32_t h = source(a->rows, a->p_at + i / a->q, a->x_h_at, a->x_h);
      const int32_t w = source(a->columns, a->q_at + i % a->q, a->x_w_at, a->x_w);
      memcpy((uint8_t *)a->y + (n * a->p * a->q + i) * a->y_pitch * a->T_bytes, (const uint8_t *)a->x + ((n * a->x_h + h) * a->x_w + w) * a->x_pitch * a->T_bytes, (size_t)bytes);
    }
}
