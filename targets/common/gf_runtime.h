/* What the emitted network uses: copies between memory levels, the team of cores, and the port that provides them.
   Addresses beyond L1 are byte offsets into a level (GF_L2(off), GF_L3(off)); L1 and the near side of a copy are pointers. */
#ifndef GF_RUNTIME_H
#define GF_RUNTIME_H
#include <string.h>
#include "gf_kernel.h"
#include "gf_config.h" /* generated: memory sizes, cores, limits of the hops */

typedef enum { GF_LEVEL_L1, GF_LEVEL_L2, GF_LEVEL_L3 } gf_level;
typedef enum { GF_L2_L1, GF_L3_L2, GF_HOPS } gf_hop; /* far_near */
typedef enum { GF_IN, GF_OUT } gf_dir;               /* towards the cores, away from them */

typedef uint32_t gf_addr;
#define GF_L2(off) ((gf_addr)(off))
#define GF_L3(off) ((gf_addr)(off))
#define GF_L1(off) ((void *)(gf_near(GF_L2_L1) + (off)))     /* near side of GF_L2_L1, and what kernels see */
#define GF_L2_NEAR(off) ((void *)(gf_near(GF_L3_L2) + (off))) /* near side of GF_L3_L2 */

/* One command of a copy engine: `runs` runs of `run` bytes. The near side is contiguous, on the far side runs lie `pitch` bytes apart. */
typedef struct {
  gf_addr far;
  void *near;
  uint32_t run, runs, pitch;
} gf_move;

/* What one command of a hop may be: the planner and gf_copy_box split by it. */
typedef struct {
  uint32_t max_bytes; /* run * runs */
  uint32_t max_pitch;
  uint32_t dims; /* 2: strided on the far side; 1: one run per command */
} gf_hop_limits;

#include "gf_port.h" /* the port's gf_port_ticket */

/* Zero-initialised; open from the first gf_copy_start to its gf_copy_wait. */
typedef struct {
  int32_t open;
  gf_port_ticket port;
} gf_ticket;

/* Provided by the port. Copies are issued and waited for by core 0 outside gf_team_run. */
uint8_t *gf_near(gf_hop hop);                                               /* start of the hop's near level */
void gf_copy_start(gf_hop hop, gf_dir dir, const gf_move *moves, int n, gf_ticket *ticket); /* on an open ticket: adds to it */
void gf_copy_wait(gf_ticket *ticket);                                       /* exactly once per opened ticket */
void gf_team_run(void (*fn)(const void *), const void *args);               /* every core runs fn(args); returns when all have */
uint32_t gf_cycles(void);                                                   /* running counter of cluster cycles (host: nanoseconds) */
void gf_call_begin(int call);                                               /* kernel call about to run; GF_BETWEEN for transfers of whole buffers */
int gf_port_open(void);                                                     /* 0, or an error number */
void gf_port_close(void);
int gf_load_weights(gf_addr l3, uint32_t bytes);                            /* the weight image into L3; 0, or an error number */
void gf_put(gf_level level, gf_addr at, const void *from, uint32_t bytes);  /* controller's access, for inputs and outputs */
void gf_get(gf_level level, gf_addr at, void *to, uint32_t bytes);

enum { GF_BETWEEN = -1, GF_OPENING = -2 };

/* A dense tile near, a strided box far. Dims outermost first, pitches in bytes; extent 0 anywhere copies nothing. */
enum { GF_BOX_DIMS = 8 };
typedef struct {
  gf_addr far;
  void *near;
  int32_t item; /* bytes per element */
  int32_t rank;
  int32_t extent[GF_BOX_DIMS];
  int32_t pitch[GF_BOX_DIMS];
} gf_box;

/* Starts the commands that copy the box: neighbouring dims that are contiguous on both sides merge, the innermost run and one strided
   dim make a command, further dims make further commands of the same ticket, and commands beyond the hop's limits are split. */
void gf_copy_box(gf_hop hop, gf_dir dir, const gf_box *box, gf_ticket *ticket);

/* The same for contiguous bytes. */
static inline void gf_copy_bytes(gf_hop hop, gf_dir dir, gf_addr far, void *near, int32_t bytes, gf_ticket *ticket) {
  const gf_box box = {.far = far, .near = near, .item = 1, .rank = 1, .extent = {bytes}, .pitch = {1}};
  gf_copy_box(hop, dir, &box, ticket);
}

/* Waits if the ticket is open. */
static inline void gf_copy_settle(gf_ticket *ticket) {
  if (ticket->open) gf_copy_wait(ticket);
}

/* Moves the rows of a ring that are still read, [keep, done) of those from `base` on, to its start. Returns `keep`: the new base. */
static inline int32_t gf_slide(void *ring, int32_t row_bytes, int32_t base, int32_t keep, int32_t done) {
  if (keep > base) memmove(ring, (uint8_t *)ring + (size_t)(keep - base) * (size_t)row_bytes, (size_t)(done - keep) * (size_t)row_bytes);
  return keep;
}

/* A tensor in a level, in logical order: element (i0, i1, ...) at `at` + sum(i * pitch) bytes. */
typedef struct {
  const char *name;
  gf_level level;
  gf_addr at;
  int32_t item;
  int32_t rank;
  int32_t extent[GF_BOX_DIMS];
  int32_t pitch[GF_BOX_DIMS];
  uint32_t bytes;
} gf_tensor;

void gf_import(const gf_tensor *tensor, const void *from); /* row-major bytes into the level */
void gf_export(const gf_tensor *tensor, void *to);         /* and back */

#endif
