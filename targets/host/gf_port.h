/* Host port: see gf_port_host.c (hostile) and gf_port_fast.c (for timing). */
#ifndef GF_PORT_H
#define GF_PORT_H
#include <stdint.h>

typedef struct {
  uint32_t id;
  int32_t in_flight;
} gf_port_ticket;

/* When a copy's bytes land: at gf_copy_start, at gf_copy_wait, or command by command at any call of the port in between. */
typedef enum { GF_TIMING_START, GF_TIMING_WAIT, GF_TIMING_RANDOM } gf_timing;

typedef struct {
  gf_timing timing;
  uint32_t seed;        /* of random timing, core order and poison */
  const char *weights;  /* file with the weight image */
  const char *counters; /* where gf_port_close writes bytes and commands as JSON, or NULL */
} gf_host_config;

extern gf_host_config gf_host;

#endif
