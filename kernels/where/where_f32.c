/* a where the condition holds, b elsewhere. */
#include "gf_where_f32_args.h"
#include "gf_rows.h"

void gf_where_f32(const void *args) {
  const gf_where_f32_args *t = args;
  const int32_t cs = t->condition_s[3], as = t->a_s[3], bs = t->b_s[3], ys = t->y_s[3];
  gf_rows r = gf_rows_share(t->i);
  while (gf_rows_next(&r)) {
    const uint8_t *c = t->condition + gf_row_offset(&r, t->condition_s);
    const float *a = t->a + gf_row_offset(&r, t->a_s);
    const float *b = t->b + gf_row_offset(&r, t->b_s);
    float *y = t->y + gf_row_offset(&r, t->y_s);
    for (int32_t j = r.begin; j < r.end; j++) y[j * ys] = c[j * cs] ? a[j * as] : b[j * bs];
  }
}
