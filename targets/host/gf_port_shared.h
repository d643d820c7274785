/* What both host ports have: the clock and the weight image. Included once by either, after gf_arena. */
#include <time.h>

/* Nanoseconds stand for cycles. */
uint32_t gf_cycles(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint32_t)((uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec);
}

#ifdef GF_WEIGHTS_IN_C
extern const uint64_t gf_weights[]; /* weights.c, made from weights.bin by the Makefile */
int gf_load_weights(gf_addr l3, uint32_t bytes) {
  memcpy(gf_arena[GF_LEVEL_L3] + l3, gf_weights, bytes);
  return 0;
}
#else
int gf_load_weights(gf_addr l3, uint32_t bytes) {
  FILE *f = fopen(gf_host.weights, "rb");
  size_t got = f ? fread(gf_arena[GF_LEVEL_L3] + l3, 1, bytes, f) : 0;
  if (f) fclose(f);
  return got == bytes ? 0 : 2;
}
#endif
