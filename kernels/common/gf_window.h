/* Windows over one spatial axis of a tile. */
#ifndef GF_WINDOW_H
#define GF_WINDOW_H
#include "gf_kernel.h"

/* Taps begin <= r < end of a window lie inside [0, extent) when tap r is at start + r * dilation. */
static inline gf_range gf_taps(int32_t start, int32_t dilation, int32_t taps, int32_t extent) {
  gf_range all = {0, taps};
  if (start >= 0 && start + (taps - 1) * dilation < extent) return all; /* the usual case, without dividing */
  gf_range inside = {start < 0 ? GF_MIN(gf_ceildiv(-start, dilation), taps) : 0, 0};
  inside.end = GF_MAX(inside.begin, GF_MIN(taps, gf_ceildiv(extent - start, dilation)));
  return inside;
}
#endif
