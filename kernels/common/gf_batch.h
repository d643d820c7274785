/* Matrices of a batch. A tile has z0 x z1 products; operands step by strides that are 0 where they broadcast. */
#ifndef GF_BATCH_H
#define GF_BATCH_H
#include "gf_kernel.h"

/* A row of the output: its product's batch coordinates and the row within it. */
typedef struct {
  int32_t z0, z1, m;
} gf_batch_row;

/* Row `index` of the tile, rows numbered over z0, z1, m. */
static inline gf_batch_row gf_batch_row_at(int32_t index, int32_t z1, int32_t m) {
  int32_t product = index / m;
  gf_batch_row row = {product / z1, product % z1, index % m};
  return row;
}

/* Where a matrix begins, in elements. */
static inline ptrdiff_t gf_batch_offset(gf_batch_row row, const int32_t *strides) {
  return (ptrdiff_t)row.z0 * strides[0] + (ptrdiff_t)row.z1 * strides[1];
}
#endif
