/* Float functions without branches or tables, which compilers turn into vector code, and sums over a line in several lanes.
   Errors, relative to the larger of the result and 1 (tests/kernels_other/test_math.py): below 3e-7. NaN stays NaN.
   Polynomials: S. Moshier, Cephes 2.2 (expf, tanhf, erff); beyond 1, erf by Abramowitz and Stegun 7.1.26. */
#ifndef GF_MATH_H
#define GF_MATH_H
#include <string.h>
#include "gf_kernel.h"

static inline float gf_float_of(uint32_t bits) {
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
}

static inline uint32_t gf_bits_of(float f) {
  uint32_t bits;
  memcpy(&bits, &f, sizeof bits);
  return bits;
}

/* 2^n as a float, n in [-126, 127]. */
static inline float gf_power_of_two(int32_t n) { return gf_float_of((uint32_t)(n + 127) << 23); }

/* e^x: x = n ln 2 + r with |r| <= ln 2 / 2; infinite above 88.7, 0 below -104. */
static inline float gf_expf(float x) {
  const float magic = 12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer, which then stands in the low bits */
  x = x < -105.0f ? -105.0f : x;
  x = x > 89.0f ? 89.0f : x;
  const float shifted = x * 1.44269504f + magic, n = shifted - magic;
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  const int32_t whole = (int32_t)((gf_bits_of(shifted) - gf_bits_of(magic)) & 0x1ff), signed_whole = whole >= 0x100 ? whole - 0x200 : whole;
  const int32_t half = (signed_whole + 256) / 2 - 128; /* two factors: 2^n alone would leave the range before the result does */
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.0f;
  return p * gf_power_of_two(half) * gf_power_of_two(signed_whole - half);
}

static inline float gf_sigmoidf(float x) { return 1.0f / (1.0f + gf_expf(-x)); }

static inline float gf_tanhf(float x) {
  const float a = fabsf(x), z = x * x;
  float p = -5.70498872745e-3f;
  p = p * z + 2.06390887954e-2f;
  p = p * z - 5.37397155531e-2f;
  p = p * z + 1.33314422036e-1f;
  p = p * z - 3.33332819422e-1f;
  const float small = p * z * x + x, large = 1.0f - 2.0f / (gf_expf(2.0f * a) + 1.0f);
  return a < 0.625f ? small : x < 0.0f ? -large : large;
}

static inline float gf_erff(float x) {
  const float a = fabsf(x), z = x * x, t = 1.0f / (1.0f + 0.3275911f * a);
  float p = 7.853861353153693e-5f;
  p = p * z - 8.010193625184903e-4f;
  p = p * z + 5.188327685732524e-3f;
  p = p * z - 2.685381193529856e-2f;
  p = p * z + 1.128358514861418e-1f;
  p = p * z - 3.761262582423300e-1f;
  p = p * z + 1.128379165726710f;
  float q = 1.061405429f;
  q = q * t - 1.453152027f;
  q = q * t + 1.421413741f;
  q = q * t - 0.284496736f;
  q = q * t + 0.254829592f;
  const float large = 1.0f - q * t * gf_expf(-z);
  return a < 1.0f ? p * x : x < 0.0f ? -large : large;
}

/* Sum of x[0..n), in lanes. */
static inline float gf_sum(const float *x, int32_t n) {
  gf_vf32 lanes = {0};
  float sum = 0.0f;
  int32_t j = 0;
  for (; j + GF_LANES <= n; j += GF_LANES) lanes += *(const gf_vf32_u *)(x + j);
  for (; j < n; j++) sum += x[j];
  for (int i = 0; i < GF_LANES; i++) sum += lanes[i];
  return sum;
}

/* Sum of (x[j] - mean)^2, in lanes. */
static inline float gf_sum_of_squares(const float *x, int32_t n, float mean) {
  gf_vf32 lanes = {0};
  float sum = 0.0f;
  int32_t j = 0;
  for (; j + GF_LANES <= n; j += GF_LANES) {
    const gf_vf32 d = *(const gf_vf32_u *)(x + j) - mean;
    lanes += d * d;
  }
  for (; j < n; j++) sum += (x[j] - mean) * (x[j] - mean);
  for (int i = 0; i < GF_LANES; i++) sum += lanes[i];
  return sum;
}

/* Greatest of x[0..n), n >= 1; a NaN may or may not count. */
static inline float gf_greatest(const float *x, int32_t n) {
  float lanes[GF_LANES], greatest = x[0];
  for (int i = 0; i < GF_LANES; i++) lanes[i] = greatest;
  int32_t j = 0;
  for (; j + GF_LANES <= n; j += GF_LANES)
    for (int i = 0; i < GF_LANES; i++) lanes[i] = x[j + i] > lanes[i] ? x[j + i] : lanes[i];
  for (; j < n; j++) greatest = x[j] > greatest ? x[j] : greatest;
  for (int i = 0; i < GF_LANES; i++) greatest = lanes[i] > greatest ? lanes[i] : greatest;
  return greatest;
}

/* x * mul + add of whole numbers held in floats, fractions cut off; x beyond int32 saturates, NaN is 0. */
static inline int64_t gf_rescaled(float x, float mul, float add) {
  const int64_t whole = x >= 2147483648.0f ? (int64_t)1 << 31 : x <= -2147483648.0f ? -((int64_t)1 << 31) : x == x ? (int64_t)x : 0;
  return whole * (int64_t)mul + (int64_t)add;
}

/* That over div, towards zero; 0 where div is 0. */
static inline float gf_rescale_trunc(float x, float mul, float add, float div) {
  const int64_t d = (int64_t)div;
  return d ? (float)(gf_rescaled(x, mul, add) / d) : 0.0f;
}

/* That over div, downwards. */
static inline float gf_rescale_floor(float x, float mul, float add, float div) {
  const int64_t n = gf_rescaled(x, mul, add), d = (int64_t)div;
  return d ? (float)(n / d - (n % d != 0 && (n < 0) != (d < 0))) : 0.0f;
}
#endif
