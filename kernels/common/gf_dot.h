/* Two products a lane at once, where the target has an instruction for that (x86 from AVX2 on). GNU vector types cannot say it, so this is the
   one place with intrinsics; everything else stands without them, and the sums are the same bit for bit. */
#ifndef GF_DOT_H
#define GF_DOT_H
#include <string.h>
#include "gf_kernel.h"

#if defined(__AVX512BW__) || (defined(__AVX2__) && !defined(__AVX512F__))
#define GF_DOT 1
#include <immintrin.h>

/* Pairs of 16-bit numbers, one pair to a 32-bit lane. */
typedef int16_t gf_pairs __attribute__((vector_size(4 * GF_LANES)));

/* acc[lane] += x[lane][0] * w[lane][0] + x[lane][1] * w[lane][1]. */
GF_INLINE void gf_dot(gf_vi32 *acc, const gf_pairs *x, const gf_pairs *w) {
#if defined(__AVX512VNNI__)
  *acc = (gf_vi32)_mm512_dpwssd_epi32((__m512i)*acc, (__m512i)*x, (__m512i)*w);
#elif defined(__AVX512BW__)
  *acc += (gf_vi32)_mm512_madd_epi16((__m512i)*x, (__m512i)*w);
#else
  *acc += (gf_vi32)_mm256_madd_epi16((__m256i)*x, (__m256i)*w);
#endif
}

/* The pair x[0] - zero, x[1] - zero in every lane. */
GF_INLINE void gf_pairs_repeat(gf_pairs *pairs, const int8_t *x, int32_t zero) {
  int16_t both;
  memcpy(&both, x, sizeof both);
#if defined(__AVX512BW__)
  *pairs = (gf_pairs)_mm512_cvtepi8_epi16(_mm256_set1_epi16(both)) - (int16_t)zero;
#else
  *pairs = (gf_pairs)_mm256_cvtepi8_epi16(_mm_set1_epi16(both)) - (int16_t)zero;
#endif
}

/* The pairs a[lane] - zero, b[lane] - zero. */
GF_INLINE void gf_pairs_join(gf_pairs *pairs, const int8_t *a, const int8_t *b, int32_t zero) {
#if defined(__AVX512BW__)
  __m128i first = _mm_loadu_si128((const void *)a), second = _mm_loadu_si128((const void *)b);
  __m256i joined = _mm256_set_m128i(_mm_unpackhi_epi8(first, second), _mm_unpacklo_epi8(first, second));
  *pairs = (gf_pairs)_mm512_cvtepi8_epi16(joined) - (int16_t)zero;
#else
  __m128i joined = _mm_unpacklo_epi8(_mm_loadl_epi64((const void *)a), _mm_loadl_epi64((const void *)b));
  *pairs = (gf_pairs)_mm256_cvtepi8_epi16(joined) - (int16_t)zero;
#endif
}
#endif
#endif
