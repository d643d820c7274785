/* Lanes of the depthwise kernels: at most 8, for networks of few channels. Blocks of channels may overlap the one before, which computes
   a few results twice: a ragged end costs no scalar loop where there are GF_CHANNELS channels or more. */
#ifndef GF_DEPTHWISE_H
#define GF_DEPTHWISE_H
#include "gf_conv.h"

#define GF_CHANNELS (GF_LANES > 8 ? 8 : GF_LANES)
#define GF_CHANNEL_VECTORS 4 /* vectors of channels at once */
typedef float gf_cf32 __attribute__((vector_size(4 * GF_CHANNELS)));
typedef int32_t gf_ci32 __attribute__((vector_size(4 * GF_CHANNELS)));
typedef int16_t gf_ci16 __attribute__((vector_size(2 * GF_CHANNELS)));
typedef int8_t gf_ci8 __attribute__((vector_size(GF_CHANNELS)));
typedef float gf_cf32_u __attribute__((vector_size(4 * GF_CHANNELS), aligned(4), may_alias));
typedef int32_t gf_ci32_u __attribute__((vector_size(4 * GF_CHANNELS), aligned(4), may_alias));
typedef int8_t gf_ci8_u __attribute__((vector_size(GF_CHANNELS), aligned(1), may_alias));

/* The taps of one window inside x, and its first row and column. */
typedef struct {
  int32_t n, h, w;
  gf_range rows, columns;
} gf_window;
#endif
