/* Maximum over both spatial axes; it stays in acc between tiles. */
#include "gf_global_maxpool_i8_args.h"

void gf_global_maxpool_i8(const void *args) {
  const gf_global_maxpool_i8_args *a = args;
  const gf_range mine = gf_share(a->c);
  for (int32_t n = 0; n < a->n; n++) {
    int8_t *restrict acc = a->acc + n * a->c;
    if (a->first)
      for (int32_t c = mine.begin; c < mine.end; c++) acc[c] = INT8_MIN;
    for (int32_t i = 0; i < a->h * a->w; i++) {
      const int8_t *restrict x = a->x + (n * a->h * a->w + i) * a->x_pitch;
      for (int32_t c = mine.begin; c < mine.end; c++) acc[c] = x[c] > acc[c] ? x[c] : acc[c];
    }
    if (!a->last) continue;
    int8_t *restrict y = a->y + n * a->c;
    for (int32_t c = mine.begin; c < mine.end; c++) y[c] = acc[c];
  }
}
