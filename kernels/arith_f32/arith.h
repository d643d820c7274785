/* y = clamp(gf_op(a, b)) of two broadcasting operands. Included after a typedef of gf_args and a macro gf_op. */
#include "gf_rows.h"

static inline void row(const float *a, int32_t as, const float *b, int32_t bs, float *y, int32_t ys, int32_t n, float lo, float hi) {
  GF_INDEPENDENT
  for (int32_t j = 0; j < n; j++) y[j * ys] = gf_clampf(gf_op(a[j * as], b[j * bs]), lo, hi);
}

static inline void arith(const gf_args *a) {
  const int32_t as = a->a_s[3], bs = a->b_s[3], ys = a->y_s[3];
  gf_rows r = gf_rows_share(a->i);
  while (gf_rows_next(&r)) {
    const float *p = a->a + gf_row_offset(&r, a->a_s) + r.begin * as;
    const float *q = a->b + gf_row_offset(&r, a->b_s) + r.begin * bs;
    float *y = a->y + gf_row_offset(&r, a->y_s) + r.begin * ys;
    const int32_t n = r.end - r.begin;
    if (as == 1 && bs == 1 && ys == 1)
      row(p, 1, q, 1, y, 1, n, a->lo, a->hi);
    else if (as == 1 && bs == 0 && ys == 1)
      row(p, 1, q, 0, y, 1, n, a->lo, a->hi);
    else if (as == 0 && bs == 1 && ys == 1)
      row(p, 0, q, 1, y, 1, n, a->lo, a->hi);
    else
      row(p, as, q, bs, y, ys, n, a->lo, a->hi);
  }
}
