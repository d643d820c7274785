#include "gf_conv.h"

/* The row (or column) of the tile of x that output `at`, counted from the padded start, takes by a tap at `offset`; -1 if none. */
static inline int32_t source(int32_t at, int32_t offset, int32_t stride, int32_t begin, int32_t extent) {
  int32_t reach = at - offset;
  if (gf_mod(reach, stride) != 0) return -1;
  int32_t local = gf_floordiv(reach, stride) - begin;
  return local < extent ? GF_MAX(local, -1) : -1;
}
