/* Slices along the middle axis by a list of indices. */
#include <string.h>
#include "gf_gather_args.h"

static int32_t source(const gf_gather_args *a, int32_t k) {
  int64_t i = a->I_bytes == 8 ? ((const int64_t *)a->indices)[k] : ((const int32_t *)a->indices)[k];
  i = i < 0 ? i + a->x_d : i;
  return (int32_t)GF_CLAMP(i, 0, a->x_d - 1);
}

void gf_gather(const void *args) {
  const gf_gather_args *a = args;
  const gf_range mine = gf_share(a->k);
  const int32_t bytes = a->b * a->T_bytes;
  for (int32_t i = 0; i < a->a; i++)
    for (int32_t k = mine.begin; k < mine.end; k++)
      memcpy((uint8_t *)a->y + (i * a->k + k) * bytes, (const uint8_t *)a->x + (i * a->x_d + source(a, k)) * bytes, (size_t)bytes);
}
