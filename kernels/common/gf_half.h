/* IEEE half floats as 16 bits, converted in integer arithmetic: not every target has them. */
#ifndef GF_HALF_H
#define GF_HALF_H
#include "gf_math.h"

static inline float gf_float_of_half(uint16_t half) {
  const uint32_t sign = (uint32_t)(half & 0x8000u) << 16, exponent = (half >> 10) & 0x1fu, fraction = half & 0x3ffu;
  if (exponent == 31) return gf_float_of(sign | 0x7f800000u | (fraction << 13));
  if (exponent > 0) return gf_float_of(sign | ((exponent + 112) << 23) | (fraction << 13));
  const float small = (float)fraction * 5.9604644775390625e-8f; /* 2^-24 */
  return sign ? -small : small;
}

/* To the nearest, halves to even; beyond 65504 infinite. */
static inline uint16_t gf_half_of_float(float v) {
  const uint32_t bits = gf_bits_of(v), sign = (bits >> 16) & 0x8000u, size = bits & 0x7fffffffu;
  if (size > 0x7f800000u) return (uint16_t)(sign | 0x7e00u);
  if (size >= 0x477ff000u) return (uint16_t)(sign | 0x7c00u);
  if (size < 0x38800000u) { /* below 2^-14: adding 1/2 leaves multiples of 2^-24, rounded, in the low bits */
    const float shifted = gf_float_of(size) + 0.5f;
    return (uint16_t)(sign | (gf_bits_of(shifted) - 0x3f000000u));
  }
  return (uint16_t)(sign | ((size - 0x38000000u + 0xfffu + ((size >> 13) & 1u)) >> 13));
}
#endif
