/* Lanes of the depthwise kernels: at most 8, for networks of few channels. Blocks of channels may overlap the one before, which computes
   a few results twice: a ragged end costs no scalar loop where there are GF_CHANNELS channels or more. */
#ifndef GF_DEPTHWISE_H
#define GF_DEPTHWISE_H
#include "gf_conv.h"
#include "gf_window.h"

#define GF_CHANNELS (GF_LANES > 8 ? 8 : GF_LANES)
#define GF_CHANNEL_VECTORS 4 /* vectors of channels at once */
#define GF_WIDE_CHANNELS (GF_CHANNEL_VECTORS * GF_CHANNELS)
#define GF_WIDE_VECTORS (GF_WIDE_CHANNELS / GF_LANES) /* the same in whole registers */
typedef float gf_cf32 __attribute__((vector_size(4 * GF_CHANNELS)));
typedef int32_t gf_ci32 __attribute__((vector_size(4 * GF_CHANNELS)));
typedef int16_t gf_ci16 __attribute__((vector_size(2 * GF_CHANNELS)));
typedef int8_t gf_ci8 __attribute__((vector_size(GF_CHANNELS)));
typedef float gf_cf32_u __attribute__((vector_size(4 * GF_CHANNELS), aligned(4), may_alias));
typedef int32_t gf_ci32_u __attribute__((vector_size(4 * GF_CHANNELS), aligned(4), may_alias));
typedef int8_t gf_ci8_u __attribute__((vector_size(GF_CHANNELS), aligned(1), may_alias));

/* The taps of one window inside x; `first` is the element (channel 0) of tap (0, 0), which may lie outside. */
typedef struct {
  ptrdiff_t first;
  gf_range rows, columns;
} gf_window;

/* The extents of the tile of x, elements from pixel to pixel, how windows step over it, and how far its border reaches in. */
typedef struct {
  int32_t h, w, pitch, r, s, h_before, w_before;
  const int32_t *strides, *dilations;
} gf_window_space;

/* The windows of `count` output pixels from `at`, of p by q an image. */
static inline void gf_windows_of(gf_window *windows, const gf_window_space *x, gf_pixel at, int32_t count, int32_t p, int32_t q) {
  for (int32_t i = 0; i < count; i++, gf_pixel_next(&at, p, q)) {
    int32_t h = at.p * x->strides[0] - x->h_before, w = at.q * x->strides[1] - x->w_before;
    windows[i].first = ((ptrdiff_t)(at.n * x->h + h) * x->w + w) * x->pitch;
    windows[i].rows = gf_taps(h, x->dilations[0], x->r, x->h);
    windows[i].columns = gf_taps(w, x->dilations[1], x->s, x->w);
  }
}
#endif
