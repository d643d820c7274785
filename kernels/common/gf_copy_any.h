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

#define GF_COPY_BLOCK_OF(NAME, T)                                                                              \
  static inline void NAME(const gf_plane *p, const T *restrict x, T *restrict y, int32_t v0, int32_t v1) {     \
    for (int32_t u0 = 0; u0 < p->nu; u0 += GF_COPY_BLOCK) {                                                    \
      const int32_t u1 = GF_MIN(u0 + GF_COPY_BLOCK, p->nu);                                                    \
      for (int32_t v = v0; v < v1; v++)                                                                        \
        for (int32_t u = u0; u < u1; u++) y[u * p->yu + v * p->yv] = x[u * p->xu + v * p->xv];                 \
    }                                                                                                          \
  }
GF_COPY_BLOCK_OF(gf_copy_block1, uint8_t)
GF_COPY_BLOCK_OF(gf_copy_block2, uint16_t)
GF_COPY_BLOCK_OF(gf_copy_block4, uint32_t)
GF_COPY_BLOCK_OF(gf_copy_block8, uint64_t)
#undef GF_COPY_BLOCK_OF

static inline void gf_copy_lines(const gf_plane *p, const uint8_t *x, uint8_t *y, int32_t v0, int32_t v1) {
  for (int32_t v = v0; v < v1; v++)
    memcpy(y + (ptrdiff_t)v * p->yv * p->bytes, x + (ptrdiff_t)v * p->xv * p->bytes, (size_t)(p->nu * p->bytes));
}

/* Lines v0 <= v < v1 of one plane. */
static inline void gf_copy_plane(const gf_plane *p, const uint8_t *x, uint8_t *y, int32_t v0, int32_t v1) {
  if (p->xu == 1 && p->yu == 1)
    gf_copy_lines(p, x, y, v0, v1);
  else if (p->bytes == 1)
    gf_copy_block1(p, x, y, v0, v1);
  else if (p->bytes == 2)
    gf_copy_block2(p, (const void *)x, (void *)y, v0, v1);
  else if (p->bytes == 4)
    gf_copy_block4(p, (const void *)x, (void *)y, v0, v1);
  else
    gf_copy_block8(p, (const void *)x, (void *)y, v0, v1);
}

/* The axis of extent > 1, other than `not`, with the least stride above 0; the last axis if there is none. */
static inline int32_t gf_copy_fastest(const int32_t *n, const int32_t *s, int32_t not) {
  int32_t best = -1;
  for (int32_t i = 0; i < GF_COPY_RANK; i++)
    if (i != not && n[i] > 1 && s[i] > 0 && (best < 0 || s[i] < s[best])) best = i;
  return best >= 0 ? best : not == GF_COPY_RANK - 1 ? GF_COPY_RANK - 2 : GF_COPY_RANK - 1;
}

/* This core's part: blocks of lines of all planes. */
static inline void gf_copy_any(const int32_t *n, const void *x, const int32_t *xs, void *y, const int32_t *ys, int32_t bytes) {
  const int32_t u = gf_copy_fastest(n, ys, -1), v = gf_copy_fastest(n, xs, u);
  const gf_plane plane = {n[u], n[v], xs[u], xs[v], ys[u], ys[v], bytes};
  const int32_t blocks = gf_ceildiv(plane.nv, GF_COPY_BLOCK);
  int32_t planes = 1;
  for (int32_t i = 0; i < GF_COPY_RANK; i++) planes *= i == u || i == v ? 1 : n[i];
  const gf_range mine = gf_share(planes * blocks);
  for (int32_t job = mine.begin; job < mine.end; job++) {
    int32_t rest = job / blocks;
    const int32_t v0 = job % blocks * GF_COPY_BLOCK;
    ptrdiff_t from = 0, to = 0;
    for (int32_t i = GF_COPY_RANK - 1; i >= 0; i--) {
      if (i == u || i == v) continue;
      from += (ptrdiff_t)(rest % n[i]) * xs[i];
      to += (ptrdiff_t)(rest % n[i]) * ys[i];
      rest /= n[i];
    }
    gf_copy_plane(&plane, (const uint8_t *)x + from * bytes, (uint8_t *)y + to * bytes, v0, GF_MIN(v0 + GF_COPY_BLOCK, plane.nv));
  }
}
#endif
