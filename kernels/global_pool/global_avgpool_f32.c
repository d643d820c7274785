/* Average over both spatial axes; sums stay in acc between tiles. */
#include "gf_global_avgpool_f32_args.h"

void gf_global_avgpool_f32(const void *args) {
  const gf_global_avgpool_f32_args *a = args;
  const gf_range mine = gf_share(a->c);
  for (int32_t n = 0; n < a->n; n++) {
    float *restrict acc = a->acc + n * a->c;
    if (a->first)
      for (int32_t c = mine.begin; c < mine.end; c++) acc[c] = 0.0f;
    for (int32_t i = 0; i < a->h * a->w; i++) {
      const float *restrict x = a->x + (n * a->h * a->w + i) * a->x_pitch;
      for (int32_t c = mine.begin; c < mine.end; c++) acc[c] += x[c];
    }
    if (!a->last) continue;
    float *restrict y = a->y + n * a->c;
    for (int32_t c = mine.begin; c < mine.end; c++) y[c] = GF_CLAMP(acc[c] * a->factor, a->lo, a->hi);
  }
}
