/* The hostile host port. Each level is an arena of its own; a copy's destination holds poison until it lands, and copies land at start,
   at wait, or in between (gf_host.timing); cores run in random order, or as threads (-DGF_THREADS). Whatever a chip would do silently
   wrong ends here in a message and abort(): waiting twice or never, touching bytes in flight, leaving a level, exceeding a hop's limits. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "gf_runtime.h"
#ifdef GF_THREADS
#include <pthread.h>
#endif
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define GF_HIDE(p, n) ASAN_POISON_MEMORY_REGION(p, n)
#define GF_SHOW(p, n) ASAN_UNPOISON_MEMORY_REGION(p, n)
#else
#define GF_HIDE(p, n) ((void)(p), (void)(n))
#define GF_SHOW(p, n) ((void)(p), (void)(n))
#endif

gf_host_config gf_host = {GF_TIMING_RANDOM, 1, "weights.bin", NULL};

/* One command in flight. `sum` is the checksum of its source when it started. */
typedef struct {
  gf_hop hop;
  gf_dir dir;
  gf_move move;
  uint32_t ticket, sum;
} gf_pending;

typedef struct {
  uint64_t bytes[GF_HOPS], commands[GF_HOPS];
} gf_counts;

/* Bytes of L1 that live across calls: a tensor that stays from the call that makes it to its last reader, or a tile that one call starts
   to copy and the next one reads. */
typedef struct {
  uint32_t at, bytes;
  int32_t first, last;
} gf_stay;

static const gf_hop_limits gf_limits[GF_HOPS] = GF_HOP_LIMITS;
static const gf_stay gf_stays[] = GF_STAYS;
static const int gf_rolls[][2] = GF_ROLLS;
static const gf_stay gf_ahead[] = GF_AHEAD;
enum { GF_STAY_COUNT = sizeof gf_stays / sizeof *gf_stays, GF_AHEAD_COUNT = sizeof gf_ahead / sizeof *gf_ahead };
static const int gf_in_flight[GF_HOPS] = GF_HOP_IN_FLIGHT;
static const char *const gf_hop_names[GF_HOPS] = {"l2_l1", "l3_l2"};
enum { GF_GUARD = 4096 }; /* known bytes on both sides of each level: whoever writes there is caught after its call of the team */
static uint8_t *gf_arena[3];
static const size_t gf_size[3] = {GF_L1_BYTES, GF_L2_BYTES, GF_L3_BYTES};
static gf_pending *gf_queue;
static int gf_queued, gf_capacity;
static gf_counts gf_count[GF_CALLS + 2]; /* calls, then GF_BETWEEN, GF_OPENING */
static int gf_call = GF_OPENING;
static uint32_t gf_tickets, gf_state;
static int gf_in_team;

static void gf_die(const char *format, ...) {
  va_list args;
  va_start(args, format);
  fprintf(stderr, "host port: call %d: ", gf_call);
  vfprintf(stderr, format, args);
  fputc('\n', stderr);
  va_end(args);
  abort();
}

static uint32_t gf_random(uint32_t n) {
  gf_state = gf_state * 1664525u + 1013904223u;
  return (uint32_t)(((uint64_t)(gf_state >> 4) * n) >> 28);
}

static void gf_poison(uint8_t *p, size_t n) { memset(p, (int)gf_random(256), n); }

static uint8_t *gf_bytes(gf_level level, uint64_t at, uint64_t n) {
  if (at + n > gf_size[level]) gf_die("bytes %llu..%llu lie outside level L%d", (unsigned long long)at, (unsigned long long)(at + n), level + 1);
  return gf_arena[level] + at;
}

/* ---- guards ---- */

static size_t gf_room(gf_level level) { return GF_GUARD + (gf_size[level] + 63) / 64 * 64 + GF_GUARD; }
static uint8_t gf_guard_byte(size_t i) { return (uint8_t)(0xA5u ^ i * 31u); }

static int gf_open_level(gf_level level) {
  uint8_t *all = aligned_alloc(64, gf_room(level));
  if (!all) return 0;
  for (size_t i = 0; i < gf_room(level); i++) all[i] = gf_guard_byte(i);
  gf_arena[level] = all + GF_GUARD;
  gf_poison(gf_arena[level], gf_size[level]);
  GF_HIDE(all, GF_GUARD);
  GF_HIDE(gf_arena[level] + gf_size[level], gf_room(level) - GF_GUARD - gf_size[level]);
  return 1;
}

static void gf_show_level(gf_level level) { GF_SHOW(gf_arena[level] - GF_GUARD, gf_room(level)); }

/* Under ASan the guards are hidden, and the write itself was the error. */
static void gf_check_guards(void) {
#if !defined(__SANITIZE_ADDRESS__)
  const uint8_t *all = gf_arena[GF_LEVEL_L1] - GF_GUARD;
  const size_t end = GF_GUARD + gf_size[GF_LEVEL_L1];
  for (size_t i = 0; i < GF_GUARD; i++)
    if (all[i] != gf_guard_byte(i)) gf_die("the kernel wrote before level L1");
  for (size_t i = end; i < end + GF_GUARD; i++)
    if (all[i] != gf_guard_byte(i)) gf_die("the kernel wrote beyond level L1: byte %u of %u", (unsigned)(i - GF_GUARD), (unsigned)gf_size[GF_LEVEL_L1]);
#endif
}

/* ---- copies ---- */

static gf_level gf_far_level(gf_hop hop) { return hop == GF_L2_L1 ? GF_LEVEL_L2 : GF_LEVEL_L3; }
static gf_level gf_near_level(gf_hop hop) { return hop == GF_L2_L1 ? GF_LEVEL_L1 : GF_LEVEL_L2; }
uint8_t *gf_near(gf_hop hop) { return gf_arena[gf_near_level(hop)]; }

static uint8_t *gf_far(const gf_pending *p, uint32_t i) { return gf_arena[gf_far_level(p->hop)] + p->move.far + (size_t)i * p->move.pitch; }
static uint8_t *gf_close_by(const gf_pending *p, uint32_t i) { return (uint8_t *)p->move.near + (size_t)i * p->move.run; }
static uint8_t *gf_from(const gf_pending *p, uint32_t i) { return p->dir == GF_IN ? gf_far(p, i) : gf_close_by(p, i); }
static uint8_t *gf_to(const gf_pending *p, uint32_t i) { return p->dir == GF_IN ? gf_close_by(p, i) : gf_far(p, i); }

static uint32_t gf_checksum(const gf_pending *p) {
  uint32_t sum = 2166136261u;
  for (uint32_t i = 0; i < p->move.runs; i++) {
    const uint8_t *from = gf_from(p, i);
    for (uint32_t j = 0; j < p->move.run; j++) sum = (sum ^ from[j]) * 16777619u;
  }
  return sum;
}

static void gf_land(int index) {
  gf_pending p = gf_queue[index];
  gf_queued--;
  memmove(&gf_queue[index], &gf_queue[index + 1], (size_t)(gf_queued - index) * sizeof *gf_queue); /* the oldest stays first */
  for (uint32_t i = 0; i < p.move.runs; i++) GF_SHOW(gf_to(&p, i), p.move.run);
  if (gf_checksum(&p) != p.sum) gf_die("the source of a copy changed while in flight (%s)", gf_hop_names[p.hop]);
  for (uint32_t i = 0; i < p.move.runs; i++) memcpy(gf_to(&p, i), gf_from(&p, i), p.move.run);
  if (p.hop == GF_L2_L1 && p.dir == GF_OUT) gf_poison(p.move.near, (size_t)p.move.run * p.move.runs); /* a stored tile is dead */
}

/* Any call of the port may find that some commands have landed. */
static void gf_time_passes(void) {
  if (gf_host.timing != GF_TIMING_RANDOM) return;
  for (int i = gf_queued - 1; i >= 0; i--)
    if (gf_random(3) == 0) gf_land(i);
}

/* Tensors that stay come from kernels and go to kernels: no copy may touch them. */
static void gf_check_stays(const uint8_t *near, uint64_t bytes) {
  uint64_t at = (uint64_t)(near - gf_arena[GF_LEVEL_L1]);
  for (int i = 0; i < GF_STAY_COUNT; i++) {
    const gf_stay *s = &gf_stays[i];
    if (gf_call >= s->first && gf_call <= s->last && at < s->at + s->bytes && s->at < at + bytes) gf_die("a copy touches a tensor that stays in L1");
  }
}

static void gf_check_move(gf_hop hop, const gf_move *m) {
  const gf_hop_limits *limit = &gf_limits[hop];
  uint8_t *near = m->near;
  if (!m->run || !m->runs) gf_die("an empty command (%s)", gf_hop_names[hop]);
  if ((uint64_t)m->run * m->runs > limit->max_bytes) gf_die("a command of %u x %u bytes exceeds %s", m->runs, m->run, gf_hop_names[hop]);
  if (m->runs > 1 && (limit->dims < 2 || m->pitch > limit->max_pitch)) gf_die("%s has no pitch of %u", gf_hop_names[hop], m->pitch);
  gf_bytes(gf_far_level(hop), m->far, (uint64_t)(m->runs - 1) * m->pitch + m->run);
  if (near < gf_near(hop)) gf_die("near side below its level (%s)", gf_hop_names[hop]);
  gf_bytes(gf_near_level(hop), (uint64_t)(near - gf_near(hop)), (uint64_t)m->run * m->runs);
  if (hop == GF_L2_L1) gf_check_stays(near, (uint64_t)m->run * m->runs);
}

/* The runs of one side of a command: `runs` of `run` bytes, `pitch` apart. */
typedef struct {
  const uint8_t *at;
  uint32_t run, runs, pitch;
} gf_side;

static gf_side gf_side_of(const gf_pending *p, int is_far) {
  gf_side far = {gf_far(p, 0), p->move.run, p->move.runs, p->move.pitch};
  gf_side near = {p->move.near, p->move.run * p->move.runs, 1, 0};
  return is_far ? far : near;
}

static int gf_meet(gf_side a, gf_side b) {
  const uint8_t *a_end = a.at + (size_t)(a.runs - 1) * a.pitch + a.run, *b_end = b.at + (size_t)(b.runs - 1) * b.pitch + b.run;
  if (a.at >= b_end || b.at >= a_end) return 0;
  for (uint32_t i = 0; i < a.runs; i++)
    for (uint32_t j = 0; j < b.runs; j++) {
      const uint8_t *x = a.at + (size_t)i * a.pitch, *y = b.at + (size_t)j * b.pitch;
      if (x < y + b.run && y < x + a.run) return 1;
    }
  return 0;
}

/* A destination may meet nothing in flight, a source no destination in flight. */
static void gf_check_flight(const gf_pending *p) {
  gf_side from = gf_side_of(p, p->dir == GF_IN), to = gf_side_of(p, p->dir == GF_OUT);
  for (int q = 0; q < gf_queued; q++) {
    const gf_pending *o = &gf_queue[q];
    gf_side o_from = gf_side_of(o, o->dir == GF_IN), o_to = gf_side_of(o, o->dir == GF_OUT);
    if (gf_meet(to, o_to) || gf_meet(to, o_from) || gf_meet(from, o_to))
      gf_die("a copy %s touches bytes in flight (%s)", p->dir == GF_IN ? "in" : "out", gf_hop_names[p->hop]);
  }
}

/* An engine that is full takes no command until its oldest has landed: core 0 waits. */
static void gf_make_place(gf_hop hop) {
  int held = 0, oldest = -1;
  for (int i = gf_queued - 1; i >= 0; i--)
    if (gf_queue[i].hop == hop) held++, oldest = i;
  if (held >= gf_in_flight[hop]) gf_land(oldest);
}

static void gf_enqueue(const gf_pending *p) {
  if (gf_queued == gf_capacity) {
    gf_capacity = gf_capacity ? 2 * gf_capacity : 64;
    gf_queue = realloc(gf_queue, (size_t)gf_capacity * sizeof *gf_queue);
    if (!gf_queue) gf_die("out of memory");
  }
  gf_queue[gf_queued++] = *p;
}

static gf_counts *gf_bucket(int call) { return &gf_count[call >= 0 ? call : GF_CALLS - 1 - call]; }

/* The tile copied early that a command goes to, or NULL. */
static const gf_stay *gf_early(const gf_pending *p) {
  const uint64_t at = (uint64_t)((const uint8_t *)p->move.near - gf_near(p->hop)), bytes = (uint64_t)p->move.run * p->move.runs;
  if (p->hop != GF_L2_L1 || p->dir != GF_IN) return NULL;
  for (int i = 0; i < GF_AHEAD_COUNT; i++) {
    const gf_stay *s = &gf_ahead[i];
    if (gf_call >= s->first && gf_call <= s->last && at >= s->at && at + bytes <= s->at + s->bytes) return s;
  }
  return NULL;
}

/* What counts a command: the call that it is for. */
static gf_counts *gf_counts_of(const gf_pending *p) {
  const gf_stay *early = gf_early(p);
  return gf_bucket(early ? early->last : gf_call);
}

void gf_copy_start(gf_hop hop, gf_dir dir, const gf_move *moves, int n, gf_ticket *ticket) {
  if (gf_in_team) gf_die("a copy was started inside gf_team_run");
  gf_time_passes();
  if (ticket->open != 0 && ticket->open != 1) gf_die("a ticket was not zero-initialised");
  if (!ticket->open) ticket->port.id = ++gf_tickets;
  ticket->open = 1;
  for (int i = 0; i < n; i++) {
    gf_pending p = {hop, dir, moves[i], ticket->port.id, 0};
    gf_check_move(hop, &p.move);
    gf_make_place(hop);
    gf_check_flight(&p);
    p.sum = gf_checksum(&p);
    for (uint32_t r = 0; r < p.move.runs; r++) {
      gf_poison(gf_to(&p, r), p.move.run);
      GF_HIDE(gf_to(&p, r), p.move.run);
    }
    gf_enqueue(&p);
    gf_counts_of(&p)->bytes[hop] += (uint64_t)p.move.run * p.move.runs;
    gf_counts_of(&p)->commands[hop]++;
    if (gf_host.timing == GF_TIMING_START) gf_land(gf_queued - 1);
  }
}

void gf_copy_wait(gf_ticket *ticket) {
  if (gf_in_team) gf_die("a copy was waited for inside gf_team_run");
  if (ticket->open != 1) gf_die("a ticket was waited for that is not open");
  gf_time_passes();
  for (int i = gf_queued - 1; i >= 0; i--)
    if (gf_queue[i].ticket == ticket->port.id) gf_land(i);
  ticket->open = 0;
}

/* Everything in L1 is dead between calls, but for what stays and what was copied early. */
static void gf_forget(int call) {
  for (size_t at = 0; at < gf_size[GF_LEVEL_L1];) {
    size_t end = gf_size[GF_LEVEL_L1], kept = 0;
    for (int i = 0; i < GF_STAY_COUNT + GF_AHEAD_COUNT; i++) {
      const gf_stay *s = i < GF_STAY_COUNT ? &gf_stays[i] : &gf_ahead[i - GF_STAY_COUNT];
      if (call <= s->first || call > s->last || s->at + s->bytes <= at) continue;
      if (s->at <= at) kept = GF_MAX(kept, s->at + s->bytes - at);
      else end = GF_MIN(end, (size_t)s->at);
    }
    if (!kept) gf_poison(gf_arena[GF_LEVEL_L1] + at, end - at);
    at = kept ? at + kept : end;
  }
}

/* Whether two calls take turns in a rolled group: then L1 is theirs together. */
static int gf_take_turns(int a, int b) {
  for (size_t i = 0; i < sizeof gf_rolls / sizeof *gf_rolls; i++)
    if (gf_rolls[i][0] <= a && a <= gf_rolls[i][1] && gf_rolls[i][0] <= b && b <= gf_rolls[i][1]) return 1;
  return 0;
}

void gf_call_begin(int call) {
  int before = gf_call;
  gf_call = call;
  if (call == GF_BETWEEN) return;
  if (gf_take_turns(before, call)) return;
  for (int i = 0; i < gf_queued; i++) /* only whole buffers, and tiles started early, may travel across calls */
    if (gf_queue[i].hop == GF_L2_L1 && !gf_early(&gf_queue[i])) gf_die("a copy of the call before was never waited for");
  if (call >= 0) gf_forget(call);
}

/* ---- the team ---- */

#ifdef GF_THREADS
static __thread int gf_core;

typedef struct {
  void (*fn)(const void *);
  const void *args;
  int core;
} gf_worker;

static void *gf_work(void *p) {
  gf_worker *w = p;
  gf_core = w->core;
  w->fn(w->args);
  return NULL;
}

static void gf_fork(void (*fn)(const void *), const void *args, const int *order) {
  pthread_t threads[GF_CORES];
  gf_worker workers[GF_CORES];
  for (int i = 0; i < GF_CORES; i++) {
    workers[i].fn = fn, workers[i].args = args, workers[i].core = order[i];
    if (pthread_create(&threads[i], NULL, gf_work, &workers[i])) gf_die("no thread for a core");
  }
  for (int i = 0; i < GF_CORES; i++) pthread_join(threads[i], NULL);
}
#else
static int gf_core;

static void gf_fork(void (*fn)(const void *), const void *args, const int *order) {
  for (int i = 0; i < GF_CORES; i++) {
    gf_core = order[i];
    fn(args);
  }
  gf_core = 0;
}
#endif

int gf_core_id(void) { return gf_core; }
int gf_core_count(void) { return GF_CORES; }

void gf_team_run(void (*fn)(const void *), const void *args) {
  int order[GF_CORES];
  gf_time_passes();
  for (int i = 0; i < GF_CORES; i++) { /* shuffled as it is filled */
    int j = (int)gf_random((uint32_t)i + 1);
    order[i] = order[j];
    order[j] = i;
  }
  gf_in_team = 1;
  gf_fork(fn, args, order);
  gf_in_team = 0;
  gf_check_guards();
}

/* ---- the controller ---- */

int gf_port_open(void) {
  gf_state = gf_host.seed;
  gf_call = GF_OPENING;
  memset(gf_count, 0, sizeof gf_count);
  for (int level = 0; level < 3; level++)
    if (!gf_open_level((gf_level)level)) return 1;
  return 0;
}

static void gf_write_counts(FILE *f, const char *name, const gf_counts *c, const char *end) {
  fprintf(f, "  {\"call\": \"%s\"", name);
  for (int h = 0; h < GF_HOPS; h++)
    fprintf(f, ", \"%s\": {\"bytes\": %llu, \"transfers\": %llu}", gf_hop_names[h], (unsigned long long)c->bytes[h], (unsigned long long)c->commands[h]);
  fprintf(f, "}%s\n", end);
}

static void gf_write_counters(const char *path) {
  static const char *const names[] = GF_CALL_NAMES;
  FILE *f = fopen(path, "w");
  if (!f) gf_die("cannot write %s", path);
  fputs("[\n", f);
  for (int i = 0; i < GF_CALLS; i++) gf_write_counts(f, names[i], gf_bucket(i), ",");
  gf_write_counts(f, "between", gf_bucket(GF_BETWEEN), ",");
  gf_write_counts(f, "opening", gf_bucket(GF_OPENING), "");
  fputs("]\n", f);
  fclose(f);
}

void gf_port_close(void) {
  if (gf_queued) gf_die("%d copies were never waited for", gf_queued);
  if (gf_host.counters) gf_write_counters(gf_host.counters);
  for (int level = 0; level < 3; level++) {
    gf_show_level((gf_level)level);
    free(gf_arena[level] - GF_GUARD);
  }
  free(gf_queue);
  gf_queue = NULL;
  gf_capacity = 0;
}

void gf_put(gf_level level, gf_addr at, const void *from, uint32_t bytes) { memcpy(gf_bytes(level, at, bytes), from, bytes); }
void gf_get(gf_level level, gf_addr at, void *to, uint32_t bytes) { memcpy(to, gf_bytes(level, at, bytes), bytes); }

#include "gf_port_shared.h"
