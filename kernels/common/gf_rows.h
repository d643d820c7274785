/* This core's rows of a tile of up to three outer axes and an innermost one, for kernels of any rank. */
#ifndef GF_ROWS_H
#define GF_ROWS_H
#include "gf_kernel.h"

/* In front of a loop whose iterations touch each element at most once: in place (y == x) is no dependence between iterations. */
#if defined(__GNUC__) && !defined(__clang__)
#define GF_INDEPENDENT _Pragma("GCC ivdep")
#else
#define GF_INDEPENDENT
#endif

/* Row (at[0], at[1], at[2]); of the innermost axis, elements begin <= j < end are this core's. */
typedef struct {
  int32_t at[3], extent[3], left, begin, end;
} gf_rows;

/* Elements of a row that cores take together, and how many beginning a row costs as much as (`rows` of `cycles` has the same). */
enum { GF_LINE = 16, GF_ROW = 4 };

/* Shares the rows of an i[0] x i[1] x i[2] x i[3] tile among the cores, or each row's elements: what is less for the busiest.
   Call gf_rows_next before each row. */
static inline gf_rows gf_rows_share(const int32_t *i) {
  const int32_t rows = i[0] * i[1] * i[2], cores = gf_core_count();
  const int32_t part = gf_ceildiv(gf_ceildiv(i[3], GF_LINE), cores) * GF_LINE;
  const int by_rows = gf_ceildiv(rows, cores) * (i[3] + GF_ROW) <= rows * (part + GF_ROW);
  gf_range all_rows = {0, rows}, whole = {0, i[3]};
  gf_range outer = by_rows ? gf_share(rows) : all_rows;
  gf_range inner = by_rows ? whole : gf_share_step(i[3], GF_LINE);
  int32_t first = outer.begin;
  gf_rows r = {{0, 0, 0}, {i[0], i[1], i[2]}, outer.end - outer.begin, inner.begin, inner.end};
  if (r.left <= 0 || inner.begin >= inner.end) {
    r.left = 0;
    return r;
  }
  r.at[2] = first % i[2] - 1; /* the first gf_rows_next adds one */
  first /= i[2];
  r.at[1] = first % i[1];
  r.at[0] = first / i[1];
  return r;
}

/* Steps to the next row; 0 when there is none. */
static inline int gf_rows_next(gf_rows *r) {
  if (r->left-- <= 0) return 0;
  if (++r->at[2] < r->extent[2]) return 1;
  r->at[2] = 0;
  if (++r->at[1] < r->extent[1]) return 1;
  r->at[1] = 0;
  r->at[0]++;
  return 1;
}

/* Element offset of the row under strides s[0..2]. */
static inline int32_t gf_row_offset(const gf_rows *r, const int32_t *s) {
  return r->at[0] * s[0] + r->at[1] * s[1] + r->at[2] * s[2];
}

/* The axis that suits the innermost loop where x runs another way than the rest: along which x, with strides `s`, runs fastest. */
static inline int32_t gf_row_axis(const int32_t *i, const int32_t *s) {
  int32_t best = 3;
  for (int32_t k = 2; k >= 0; k--)
    if (i[k] > 1 && s[k] > 0 && (i[best] == 1 || s[k] < s[best])) best = k;
  return best;
}

/* Extents or strides with axis k in the last place. */
typedef struct {
  int32_t of[4];
} gf_axes;

static inline gf_axes gf_axes_last(const int32_t *from, int32_t k) {
  gf_axes a = {{from[0], from[1], from[2], from[k]}};
  if (k < 3) a.of[k] = from[3];
  return a;
}

/* [lo, hi]; NaN stays. */
static inline float gf_clampf(float v, float lo, float hi) {
  v = v < lo ? lo : v;
  return v > hi ? hi : v;
}

/* ((v + 2^(shift-1)) >> shift) for |v| < 2^62 as int32: logical shifts of a sum made positive, which vectorise where arithmetic ones do not.
   The caller guarantees that the result fits. */
static inline int32_t gf_round_shift(int64_t v, int shift) {
  uint64_t up = (uint64_t)v + ((uint64_t)1 << (shift - 1)) + ((uint64_t)1 << 62);
  return (int32_t)(uint32_t)((up >> shift) - (((uint64_t)1 << 62) >> shift));
}
#endif
