/* Softmax over the last axis, integers only: a table of exponentials and one 64-bit division per line. */
#include "gf_softmax_i8_args.h"
#include "gf_rows.h"

/* Brings sum into [2^31, 2^32), divides once, and keeps 31 bits of the quotient: out = e * *factor / 2^*right. */
static void line_factor(uint64_t sum, int32_t mul, int32_t shift, int32_t *factor, int32_t *right) {
  int32_t z = 0;
  while (sum >> z >= (uint64_t)1 << 32) z++;
  while (z <= 0 && sum << -z < (uint64_t)1 << 31) z--;
  const uint64_t normal = z >= 0 ? sum >> z : sum << -z;
  uint64_t quotient = ((uint64_t)mul << 32) / normal;
  int32_t by = shift + 32 + z;
  for (; quotient >= (uint64_t)1 << 31; by--) quotient >>= 1;
  if (by > 62) quotient >>= GF_MIN(by - 62, 31);
  *factor = (int32_t)quotient;
  *right = GF_MIN(by, 62);
}

static void line(const gf_softmax_i8_args *a, const int8_t *x, int8_t *y) {
  int32_t greatest = x[0], factor, right;
  uint64_t sum = 0;
  for (int32_t j = 1; j < a->d; j++) greatest = GF_MAX(greatest, x[j]);
  for (int32_t j = 0; j < a->d; j++) sum += a->table[greatest - x[j]];
  line_factor(sum, a->mul, a->shift, &factor, &right);
  for (int32_t j = 0; j < a->d; j++)
    y[j] = gf_saturate(gf_requantise((int32_t)a->table[greatest - x[j]], factor, right), a->y_zero, INT8_MIN, INT8_MAX);
}

void gf_softmax_i8(const void *args) {
  const gf_softmax_i8_args *a = args;
  const int32_t lines[4] = {a->b[0], a->b[1], a->b[2], 1};
  gf_rows r = gf_rows_share(lines);
  while (gf_rows_next(&r)) line(a, a->x + gf_row_offset(&r, a->x_s), a->y + gf_row_offset(&r, a->y_s));
}
