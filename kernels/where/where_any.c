/* a where the condition holds, b elsewhere, for elements of any size. */
#include <string.h>
#include "gf_where_any_args.h"
#include "gf_rows.h"

void gf_where_any(const void *args) {
  const gf_where_any_args *t = args;
  const int32_t cs = t->condition_s[3], as = t->a_s[3], bs = t->b_s[3], ys = t->y_s[3], size = t->T_bytes;
  gf_rows r = gf_rows_share(t->i);
  while (gf_rows_next(&r)) {
    const uint8_t *c = t->condition + gf_row_offset(&r, t->condition_s);
    const uint8_t *a = (const uint8_t *)t->a + gf_row_offset(&r, t->a_s) * size;
    const uint8_t *b = (const uint8_t *)t->b + gf_row_offset(&r, t->b_s) * size;
    uint8_t *y = (uint8_t *)t->y + gf_row_offset(&r, t->y_s) * size;
    for (int32_t j = r.begin; j < r.end; j++) memmove(y + j * ys * size, c[j * cs] ? a + j * as * size : b + j * bs * size, (size_t)size);
  }
}
