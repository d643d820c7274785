/* What every kernel may use: integer helpers that match the descriptor language, the core's share of a loop, vector types, fixed point.
   Plain C99 with GNU vector types, which gcc and clang lower to scalar code where the target has no vector unit. */
#ifndef GF_KERNEL_H
#define GF_KERNEL_H
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include "gf_fixed.h"

#define GF_MIN(a, b) ((a) < (b) ? (a) : (b))
#define GF_MAX(a, b) ((a) > (b) ? (a) : (b))
#define GF_CLAMP(v, lo, hi) GF_MIN(GF_MAX(v, lo), hi)

/* Rounds towards minus infinity, as Python's //; b > 0. */
static inline int32_t gf_floordiv(int32_t a, int32_t b) { return a >= 0 ? a / b : -((b - 1 - a) / b); }
/* In [0, b); b > 0. */
static inline int32_t gf_mod(int32_t a, int32_t b) { return a - gf_floordiv(a, b) * b; }
/* Rounds towards plus infinity; b > 0. */
static inline int32_t gf_ceildiv(int32_t a, int32_t b) { return -gf_floordiv(-a, b); }
/* The least multiple of b that is not below a. */
static inline int32_t gf_align(int32_t a, int32_t b) { return gf_ceildiv(a, b) * b; }

/* The port's: this core's number within the team, and the team's size. */
int gf_core_id(void);
int gf_core_count(void);

/* A half-open range [begin, end). */
typedef struct {
  int32_t begin, end;
} gf_range;

/* This core's part of 0..n, in whole steps: no core gets more than ceil(ceil(n / step) / cores) of them; the last step may be ragged. */
static inline gf_range gf_share_step(int32_t n, int32_t step) {
  int32_t chunk = gf_ceildiv(gf_ceildiv(n, step), gf_core_count()) * step;
  gf_range mine = {GF_MIN(chunk * gf_core_id(), n), GF_MIN(chunk * (gf_core_id() + 1), n)};
  return mine;
}

/* This core's part of 0..n. */
static inline gf_range gf_share(int32_t n) { return gf_share_step(n, 1); }

/* This core's part of the pairs (outer, inner) of a product, run by run: those of one `outer` are `run` of the inner. */
typedef struct {
  gf_range left, run;
  int32_t outer, inner;
} gf_product;

/* No core gets more than ceil(outer * inner / cores) pairs. Call gf_product_next before each run. */
static inline gf_product gf_share_product(int32_t outer, int32_t inner) {
  gf_product mine = {gf_share(outer * inner), {0, 0}, 0, inner};
  return mine;
}

/* Steps to the next run; 0 when there is none. */
static inline int gf_product_next(gf_product *p) {
  if (p->left.begin >= p->left.end) return 0;
  p->outer = p->left.begin / p->inner;
  p->run.begin = p->left.begin % p->inner;
  p->run.end = GF_MIN(p->inner, p->run.begin + p->left.end - p->left.begin);
  p->left.begin += p->run.end - p->run.begin;
  return 1;
}

/* Vectors of GF_LANES 32-bit lanes, as wide as the target's registers, and the narrower integers that widen to them one step at a time.
   The _u forms may sit at any address and alias anything: load and store through them, `v = *(const gf_vf32_u *)p`.
   Vectors are never passed to or returned from functions: how that is done depends on the target's options. */
#if defined(__AVX512F__)
#define GF_LANES 16
#elif defined(__AVX2__)
#define GF_LANES 8
#else
#define GF_LANES 4
#endif
typedef float gf_vf32 __attribute__((vector_size(4 * GF_LANES)));
typedef int32_t gf_vi32 __attribute__((vector_size(4 * GF_LANES)));
typedef int16_t gf_vi16 __attribute__((vector_size(2 * GF_LANES)));
typedef int8_t gf_vi8 __attribute__((vector_size(GF_LANES)));
typedef float gf_vf32_u __attribute__((vector_size(4 * GF_LANES), aligned(4), may_alias));
typedef int32_t gf_vi32_u __attribute__((vector_size(4 * GF_LANES), aligned(4), may_alias));
typedef int16_t gf_vi16_u __attribute__((vector_size(2 * GF_LANES), aligned(2), may_alias));
typedef int8_t gf_vi8_u __attribute__((vector_size(GF_LANES), aligned(1), may_alias));

/* A small function whose callers need its loops unrolled for their constant arguments. */
#define GF_INLINE static inline __attribute__((always_inline))

/* Whether lines, of q rows that lie `row` elements apart, do not follow each other as their rows do; `line` 0: they do. */
static inline int gf_lines_apart(ptrdiff_t row, ptrdiff_t line, int32_t q) { return line != 0 && line != q * row; }

/* The element where row `at` of such lines begins. */
static inline ptrdiff_t gf_row_of_lines(int32_t at, ptrdiff_t row, ptrdiff_t line, int32_t q) {
  return gf_lines_apart(row, line, q) ? at / q * line + at % q * row : at * row;
}
#endif
