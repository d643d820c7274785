/* Which row a list of numbers means, for kernels that write at computed places. */
#ifndef GF_SCATTER_H
#define GF_SCATTER_H
#include "gf_kernel.h"

/* Number `at` of a list of indices of 4 or 8 bytes. */
static inline int64_t gf_index(const void *indices, int32_t bytes, int32_t at) {
  return bytes == 8 ? ((const int64_t *)indices)[at] : ((const int32_t *)indices)[at];
}

/* The row of the index of q numbers at `indices[at]`, over axes of these extents; -1 where one is outside. */
static inline int32_t gf_scatter_row(const void *indices, int32_t bytes, int32_t at, const int32_t *extents, int32_t q) {
  int64_t row = 0;
  for (int32_t k = 0; k < q; k++) {
    int64_t i = gf_index(indices, bytes, at + k);
    i = i < 0 ? i + extents[k] : i;
    if (i < 0 || i >= extents[k]) return -1;
    row = row * extents[k] + i;
  }
  return (int32_t)row;
}
#endif
