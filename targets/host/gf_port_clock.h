/* The host's clock: nanoseconds stand for cycles. */
#include <time.h>

uint32_t gf_cycles(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint32_t)((uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec);
}
