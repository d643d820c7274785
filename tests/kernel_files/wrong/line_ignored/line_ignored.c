#include "gf_line_ignored_args.h"

/* Lines of rows of y are taken for dense, where they lie further apart. */
void gf_line_ignored(const void *args) {
  const gf_line_ignored_args *a = args;
  gf_range lines = gf_share(a->h);
  for (int32_t h = lines.begin; h < lines.end; h++)
    for (int32_t w = 0; w < a->w; w++)
      for (int32_t c = 0; c < a->c; c++)
        a->y[(h * a->w + w) * a->y_pitch + c] = (int8_t)~a->x[(h * a->w + w) * a->x_pitch + c];
}
