/* Where the windows of output pixels lie in the tile of x, for convolutions. Pixels are numbered over n, p, q. */
#ifndef GF_CONV_H
#define GF_CONV_H
#include "gf_macs.h"

/* An output pixel of the tile. */
typedef struct {
  int32_t n, p, q;
} gf_pixel;

/* Pixel `index` of a tile of p by q pixels an image. */
static inline gf_pixel gf_pixel_at(int32_t index, int32_t p, int32_t q) {
  int32_t row = index / q;
  gf_pixel at = {row / p, row % p, index % q};
  return at;
}

static inline void gf_pixel_next(gf_pixel *at, int32_t p, int32_t q) {
  if (++at->q < q) return;
  at->q = 0;
  if (++at->p < p) return;
  at->p = 0;
  at->n++;
}

/* Up to GF_PIXELS windows: image, first row and first column of each, in the tile of x (negative where they begin in the border). */
typedef struct {
  int32_t n[GF_PIXELS], h[GF_PIXELS], w[GF_PIXELS];
} gf_windows;

/* The extents of the output tile, and how far windows are apart and outside. */
typedef struct {
  int32_t p, q;
  const int32_t *strides;
  int32_t h_before, w_before;
} gf_window_grid;

/* The windows of pixels from `at`; the last of the `valid` ones is repeated to fill the registers. */
static inline void gf_windows_find(gf_windows *windows, const gf_window_grid *grid, int32_t at, int32_t valid) {
  gf_pixel pixel = gf_pixel_at(at, grid->p, grid->q);
  for (int i = 0; i < GF_PIXELS; i++) {
    windows->n[i] = pixel.n;
    windows->h[i] = pixel.p * grid->strides[0] - grid->h_before;
    windows->w[i] = pixel.q * grid->strides[1] - grid->w_before;
    if (i < valid - 1) gf_pixel_next(&pixel, grid->p, grid->q);
  }
}

/* Whether taps at `offset`, `extent` of them, lie inside 0..size for every window starting at `start`. */
static inline int gf_windows_inside(const int32_t *start, int32_t offset, int32_t extent, int32_t size) {
  int inside = 1;
  for (int i = 0; i < GF_PIXELS; i++) inside &= start[i] + offset >= 0 && start[i] + offset + extent <= size;
  return inside;
}
#endif
