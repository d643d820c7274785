/* Elements along the middle axis, each by its own index. */
#include <string.h>
#include "gf_gather_elements_args.h"

static int32_t source(const gf_gather_elements_args *a, int32_t at) {
  int64_t i = a->I_bytes == 8 ? ((const int64_t *)a->indices)[at] : ((const int32_t *)a->indices)[at];
  i = i < 0 ? i + a->x_d : i;
  return (int32_t)GF_CLAMP(i, 0, a->x_d - 1);
}

void gf_gather_elements(const void *args) {
  const gf_gather_elements_args *a = args;
  const gf_range mine = gf_share(a->k);
  const size_t bytes = (size_t)a->T_bytes;
  for (int32_t i = 0; i < a->a; i++)
    for (int32_t at = (i * a->k + mine.begin) * a->b; at < (i * a->k + mine.end) * a->b; at++)
      memcpy((uint8_t *)a->y + (size_t)at * bytes, (const uint8_t *)a->x + (size_t)((i * a->x_d + source(a, at)) * a->b + at % a->b) * bytes, bytes);
}
