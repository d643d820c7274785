/* RNN, one step a call: the cores share the units of the tile. */
#include "gf_rnn_units_args.h"
#include "gf_rows.h"

typedef gf_rnn_units_args call;
#define U_AT c->u_at
#include "gf_rnn_step.h"

void gf_rnn_units(const void *args) {
  const call *c = args;
  const gf_range mine = gf_share_step(c->u, GF_BLOCK);
  if (mine.begin >= mine.end) return;
  float *sums = (float *)(void *)(c->sums + (ptrdiff_t)gf_core_id() * c->sums_pitch);
  for (int32_t row = 0; row < c->n; row++) step(c, sums, 0, row, mine.begin, mine.end);
}
