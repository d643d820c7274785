/* Rows of a group: y = clamp((x - mean) * factor * gamma + beta), gamma and beta of the row's channel. NaN stays. */
#ifndef GF_GROUP_H
#define GF_GROUP_H
#include "gf_math.h"
#include "gf_rows.h"

static inline void gf_normalise_row(const float *x, float *y, int32_t n, float mean, float factor, float offset, float lo, float hi) {
  GF_INDEPENDENT
  for (int32_t j = 0; j < n; j++) y[j] = gf_clampf((x[j] - mean) * factor + offset, lo, hi);
}
#endif
