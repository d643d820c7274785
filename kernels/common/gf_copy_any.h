/* Copies between two storage orders of one tensor of up to six axes; a stride of 0 in x repeats. */
#ifndef GF_COPY_ANY_H
#define GF_COPY_ANY_H
#include <string.h>
#include "gf_kernel.h"

enum { GF_COPY_RANK = 6, GF_COPY_BLOCK = 16 };

/* Two inner axes: u, along which y runs fastest, and v, along which x does among the others. Strides in elements. */
typedef struct {
  int32_t nu, nv, xu, xv, yu, yv, bytes;
} gf_plane;

/* A part of a plane. */
typedef struct {
  gf_range u, v;
} gf_part;

#define GF_COPY_BLOCK_OF(NAME, T)                                                                              \
  static inline void NAME(const gf_plane *p, const T *restrict x, T *restrict y, gf_part part) {               \
    for (int32_t v = part.v.begin; v < part.v.end; v++)                                                        \
      for (int32_t u = part.u.begin; u < part.u.end; u++) y[u * p->yu + v * p->yv] = x[u * p->xu + v * p->xv]; \
  }
GF_COPY_BLOCK_OF(gf_copy_block1, uint8_t)
GF_COPY_BLOCK_OF(gf_copy_block2, uint16_t)
GF_COPY_BLOCK_OF(gf_copy_block4, uint32_t)
GF_COPY_BLOCK_OF(gf_copy_block8, uint64_t)
#undef GF_COPY_BLOCK_OF

static inline void gf_copy_lines(const gf_plane *p, const uint8_t *x, uint8_t *y, gf_part part) {
  const size_t bytes = (size_t)((part.u.end - part.u.begin) * p->bytes);
  for (int32_t v = part.v.begin; v < part.v.end; v++)
    memcpy(y + (ptrdiff_t)(v * p->yv + part.u.begin) * p->bytes, x + (ptrdiff_t)(v * p->xv + part.u.begin) * p->bytes, bytes);
}

static inline void gf_copy_part(const gf_plane *p, const uint8_t *x, uint8_t *y, gf_part part) {
  if (p->xu == 1 && p->yu == 1)
    gf_copy_lines(p, x, y, part);
  else if (p->bytes == 1)
    gf_copy_block1(p, x, y, part);
  else if (p->bytes == 2)
    gf_copy_block2(p, (const void *)x, (void *)y, part);
  else if (p->bytes == 4)
    gf_copy_block4(p, (const void *)x, (void *)y, part);
  else
    gf_copy_block8(p, (const void *)x, (void *)y, part);
}

/* The axis of extent > 1, other than `not`, with the least stride above 0; the last axis if there is none. */
static inline int32_t gf_copy_fastest(const int32_t *n, const int32_t *s, int32_t not) {
  int32_t best = -1;
  for (int32_t i = 0; i < GF_COPY_RANK; i++)
    if (i != not && n[i] > 1 && s[i] > 0 && (best < 0 || s[i] < s[best])) best = i;
  return best >= 0 ? best : not == GF_COPY_RANK - 1 ? GF_COPY_RANK - 2 : GF_COPY_RANK - 1;
}

/* Part `at` of those that hold `step` each of 0..n. */
static inline gf_range gf_copy_range(int32_t at, int32_t step, int32_t n) {
  gf_range r = {at * step, GF_MIN(at * step + step, n)};
  return r;
}

/* This core's parts of all planes. Where x and y both run along u, whole lines are copied if there is one for every core; else parts are 16
   wide. A part has up to 16 lines, and each core some four parts or more, so that none has much more than the others. */
static inline void gf_copy_any(const int32_t *n, const void *x, const int32_t *xs, void *y, const int32_t *ys, int32_t bytes) {
  const int32_t out = gf_copy_fastest(n, ys, -1), in = gf_copy_fastest(n, xs, out), cores = gf_core_count();
  const int32_t straight = xs[out] == 1 && ys[out] == 1, swap = !straight && n[out] < n[in]; /* the longer one innermost */
  const int32_t u = swap ? in : out, v = swap ? out : in;
  const gf_plane plane = {n[u], n[v], xs[u], xs[v], ys[u], ys[v], bytes};
  int32_t planes = 1;
  for (int32_t i = 0; i < GF_COPY_RANK; i++) planes *= i == u || i == v ? 1 : n[i];
  const int32_t lines = planes * plane.nv;
  const int32_t part = gf_ceildiv(gf_ceildiv(plane.nu, GF_COPY_BLOCK), cores) * GF_COPY_BLOCK;
  const int32_t nu = !straight ? GF_COPY_BLOCK : lines >= cores ? plane.nu : part, across = gf_ceildiv(plane.nu, nu);
  const int32_t nv = GF_CLAMP(gf_ceildiv(lines * across, 4 * cores), 1, GF_COPY_BLOCK), down = gf_ceildiv(plane.nv, nv);
  const gf_range mine = gf_share(planes * down * across);
  for (int32_t job = mine.begin; job < mine.end; job++) {
    const gf_part part = {gf_copy_range(job % across, nu, plane.nu), gf_copy_range(job / across % down, nv, plane.nv)};
    int32_t rest = job / across / down;
    ptrdiff_t from = 0, to = 0;
    for (int32_t i = GF_COPY_RANK - 1; i >= 0; i--) {
      if (i == u || i == v) continue;
      from += (ptrdiff_t)(rest % n[i]) * xs[i];
      to += (ptrdiff_t)(rest % n[i]) * ys[i];
      rest /= n[i];
    }
    gf_copy_part(&plane, (const uint8_t *)x + from * bytes, (uint8_t *)y + to * bytes, part);
  }
}
#endif
