/* The fast host port, for timing: copies land at once, nothing is checked or counted, one core takes every share. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "gf_runtime.h"

gf_host_config gf_host = {GF_TIMING_START, 1, "weights.bin", NULL};

static uint8_t *gf_arena[3];
static const size_t gf_size[3] = {GF_L1_BYTES, GF_L2_BYTES, GF_L3_BYTES};

uint8_t *gf_near(gf_hop hop) { return gf_arena[hop == GF_L2_L1 ? GF_LEVEL_L1 : GF_LEVEL_L2]; }

static void gf_copy(gf_hop hop, gf_dir dir, const gf_move *m) {
  uint8_t *far = gf_arena[hop == GF_L2_L1 ? GF_LEVEL_L2 : GF_LEVEL_L3] + m->far, *near = m->near;
  for (uint32_t i = 0; i < m->runs; i++, far += m->pitch, near += m->run) memcpy(dir == GF_IN ? near : far, dir == GF_IN ? far : near, m->run);
}

void gf_copy_start(gf_hop hop, gf_dir dir, const gf_move *moves, int n, gf_ticket *ticket) {
  for (int i = 0; i < n; i++) gf_copy(hop, dir, &moves[i]);
  ticket->open = 1;
}

void gf_copy_wait(gf_ticket *ticket) { ticket->open = 0; }
void gf_team_run(void (*fn)(const void *), const void *args) { fn(args); }
int gf_core_id(void) { return 0; }
int gf_core_count(void) { return 1; }
void gf_call_begin(int call) { (void)call; }

int gf_port_open(void) {
  for (int level = 0; level < 3; level++)
    if (!(gf_arena[level] = aligned_alloc(64, (gf_size[level] + 64) / 64 * 64))) return 1;
  return 0;
}

void gf_port_close(void) {
  for (int level = 0; level < 3; level++) free(gf_arena[level]);
}

void gf_put(gf_level level, gf_addr at, const void *from, uint32_t bytes) { memcpy(gf_arena[level] + at, from, bytes); }
void gf_get(gf_level level, gf_addr at, void *to, uint32_t bytes) { memcpy(to, gf_arena[level] + at, bytes); }

#include "gf_port_shared.h"
