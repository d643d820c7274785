/* Boxes to commands, and tensors in and out. The planner counts by the same rules (tiler/moves.py). */
#include "gf_runtime.h"

static const gf_hop_limits gf_limits[GF_HOPS] = GF_HOP_LIMITS;

enum { GF_BATCH = 16 };

/* Commands on their way to one gf_copy_start. */
typedef struct {
  gf_hop hop;
  gf_dir dir;
  gf_ticket *ticket;
  int n;
  gf_move moves[GF_BATCH];
} gf_batch;

static void gf_flush(gf_batch *b) {
  if (b->n) gf_copy_start(b->hop, b->dir, b->moves, b->n, b->ticket);
  b->n = 0;
}

static void gf_command(gf_batch *b, gf_addr far, uint8_t *near, uint32_t run, uint32_t runs, uint32_t pitch) {
  gf_move move = {far, near, run, runs, pitch};
  if (b->n == GF_BATCH) gf_flush(b);
  b->moves[b->n++] = move;
}

/* One run that may exceed a command. */
static void gf_run_split(gf_batch *b, gf_addr far, uint8_t *near, uint32_t run) {
  uint32_t max = gf_limits[b->hop].max_bytes;
  for (uint32_t done = 0; done < run; done += max) gf_command(b, far + done, near + done, GF_MIN(max, run - done), 1, 0);
}

/* Runs `pitch` bytes apart. */
static void gf_runs_split(gf_batch *b, gf_addr far, uint8_t *near, uint32_t run, uint32_t runs, int32_t pitch) {
  const gf_hop_limits *limit = &gf_limits[b->hop];
  int strided = limit->dims >= 2 && pitch >= 0 && (uint32_t)pitch <= limit->max_pitch && run <= limit->max_bytes;
  uint32_t step = strided ? GF_MIN(limit->max_bytes / run, runs) : 1;
  for (uint32_t i = 0; i < runs; i += step) {
    gf_addr from = far + (gf_addr)((int64_t)i * pitch);
    if (step == 1) gf_run_split(b, from, near + (size_t)i * run, run);
    else gf_command(b, from, near + (size_t)i * run, run, GF_MIN(step, runs - i), (uint32_t)pitch);
  }
}

/* Merged dims, outermost first, and the run within them. Returns 0 for an empty box. */
static int gf_merge(const gf_box *box, gf_box *merged, uint32_t *run) {
  int rank = 0;
  for (int d = 0; d < box->rank; d++) {
    if (box->extent[d] <= 0) return 0;
    if (box->extent[d] == 1) continue;
    if (rank && merged->pitch[rank - 1] == box->extent[d] * box->pitch[d]) merged->extent[rank - 1] *= box->extent[d];
    else merged->extent[rank++] = box->extent[d];
    merged->pitch[rank - 1] = box->pitch[d];
  }
  *run = (uint32_t)box->item;
  if (rank && merged->pitch[rank - 1] == box->item) *run *= (uint32_t)merged->extent[--rank];
  merged->rank = rank;
  return 1;
}

void gf_copy_box(gf_hop hop, gf_dir dir, const gf_box *box, gf_ticket *ticket) {
  gf_batch batch = {.hop = hop, .dir = dir, .ticket = ticket};
  gf_box m;
  uint32_t run;
  if (!gf_merge(box, &m, &run)) return;
  int outer = m.rank > 1 ? m.rank - 1 : 0; /* dims that become commands of their own */
  uint32_t runs = m.rank ? (uint32_t)m.extent[m.rank - 1] : 1;
  int32_t pitch = m.rank ? m.pitch[m.rank - 1] : 0;
  int32_t at[GF_BOX_DIMS] = {0};
  uint8_t *near = box->near;
  for (;;) {
    gf_addr far = box->far;
    for (int d = 0; d < outer; d++) far += (gf_addr)((int64_t)at[d] * m.pitch[d]);
    gf_runs_split(&batch, far, near, run, runs, pitch);
    near += (size_t)run * runs;
    int d = outer - 1;
    while (d >= 0 && ++at[d] == m.extent[d]) at[d--] = 0;
    if (d < 0) break;
  }
  gf_flush(&batch);
}

/* Calls gf_put or gf_get for each contiguous run of the tensor. */
static void gf_walk(const gf_tensor *t, const uint8_t *from, uint8_t *to) {
  gf_box box = {.item = t->item, .rank = t->rank}, m;
  uint32_t run;
  for (int d = 0; d < t->rank; d++) box.extent[d] = t->extent[d], box.pitch[d] = t->pitch[d];
  if (!gf_merge(&box, &m, &run)) return;
  int32_t at[GF_BOX_DIMS] = {0};
  for (size_t done = 0;; done += run) {
    gf_addr far = t->at;
    for (int d = 0; d < m.rank; d++) far += (gf_addr)((int64_t)at[d] * m.pitch[d]);
    if (from) gf_put(t->level, far, from + done, run);
    else gf_get(t->level, far, to + done, run);
    int d = m.rank - 1;
    while (d >= 0 && ++at[d] == m.extent[d]) at[d--] = 0;
    if (d < 0) return;
  }
}

void gf_import(const gf_tensor *tensor, const void *from) { gf_walk(tensor, from, NULL); }
void gf_export(const gf_tensor *tensor, void *to) { gf_walk(tensor, NULL, to); }
