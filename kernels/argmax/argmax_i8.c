/* Index of the greatest or least element of the last axis. */
#include "gf_argmax_i8_args.h"
#include "gf_rows.h"

static void line(const gf_argmax_i8_args *a, const int8_t *x, int64_t *y) {
  int32_t best = 0;
  for (int32_t j = 1; j < a->d; j++) {
    const int better = a->minimum ? x[j] < x[best] : x[j] > x[best];
    if (better || (a->last && x[j] == x[best])) best = j;
  }
  *y = best;
}

void gf_argmax_i8(const void *args) {
  const gf_argmax_i8_args *a = args;
  const int32_t lines[4] = {a->b[0], a->b[1], a->b[2], 1};
  gf_rows r = gf_rows_share(lines);
  while (gf_rows_next(&r)) line(a, a->x + gf_row_offset(&r, a->x_s), a->y + gf_row_offset(&r, a->y_s));
}
