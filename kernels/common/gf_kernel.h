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

/* Part `number` of `count` of 0..n, in whole steps: none gets more than ceil(ceil(n / step) / count) of them; the last step may be ragged. */
static inline gf_range gf_part(int32_t n, int32_t step, int32_t number, int32_t count) {
  int32_t chunk = gf_ceildiv(gf_ceildiv(n, step), count) * step;
  gf_range part = {GF_MIN(chunk * number, n), GF_MIN(chunk * (number + 1), n)};
  return part;
}

/* This core's part of 0..n, in whole steps. */
static inline gf_range gf_share_step(int32_t n, int32_t step) { return gf_part(n, step, gf_core_id(), gf_core_count()); }

/* This core's part of a product: of `outer`, and where that has fewer steps than there are cores, of `inner` too. */
typedef struct {
  gf_range outer, inner;
} gf_team_box;

/* The cores as a grid: a row of it per step of `outer`, as long as there are cores, the columns share `inner`. Cores left over get nothing. */
static inline gf_team_box gf_share_box(int32_t outer, int32_t outer_step, int32_t inner, int32_t inner_step) {
  int32_t rows = GF_MAX(1, GF_MIN(gf_ceildiv(outer, outer_step), gf_core_count())), columns = gf_core_count() / rows;
  gf_team_box mine = {gf_part(outer, outer_step, gf_core_id() / columns, rows), gf_part(inner, inner_step, gf_core_id() % columns, columns)};
  if (gf_core_id() >= rows * columns) mine.outer.end = mine.outer.begin;
  return mine;
}

/* This core's part of 0..n. */
static inline gf_range gf_share(int32_t n) { return gf_share_step(n, 1); }

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

#endif
