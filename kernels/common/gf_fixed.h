/* Fixed-point rounding, once for C. The words and the numpy twin stand in fusion_engine/fixed_point.py; a test holds them together. */
#ifndef GF_FIXED_H
#define GF_FIXED_H
#include <stdint.h>

/* round(acc * mul / 2^shift), halves towards plus infinity; mul in [0, 2^31), shift in [1, 62]. */
static inline int64_t gf_requantise(int32_t acc, int32_t mul, int shift) {
  return ((int64_t)acc * mul + ((int64_t)1 << (shift - 1))) >> shift;
}

/* round((a * a_mul + b * b_mul) / 2^shift), halves towards plus infinity: two quantised numbers, less their zero points, on one scale. */
static inline int64_t gf_add_scaled(int32_t a, int32_t a_mul, int32_t b, int32_t b_mul, int shift) {
  return ((int64_t)a * a_mul + (int64_t)b * b_mul + ((int64_t)1 << (shift - 1))) >> shift;
}

/* Add the zero point and clamp. */
static inline int8_t gf_saturate(int64_t value, int32_t zero, int32_t lo, int32_t hi) {
  int64_t v = value + zero;
  v = v < lo ? lo : v;
  v = v > hi ? hi : v;
  return (int8_t)v;
}
#endif
