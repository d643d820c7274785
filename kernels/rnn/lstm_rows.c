/* LSTM, many steps a call: each core has rows of its own. */
#include "gf_lstm_rows_args.h"
#include "gf_rows.h"

typedef gf_lstm_rows_args call;
#define U_AT 0
#include "gf_lstm_step.h"

void gf_lstm_rows(const void *args) {
  const call *c = args;
  const gf_range mine = gf_share(c->n);
  float *sums = (float *)(void *)(c->sums + (ptrdiff_t)gf_core_id() * c->sums_pitch);
  for (int32_t i = 0; i < c->t; i++)
    for (int32_t row = mine.begin; row < mine.end; row++) step(c, sums, i, row, 0, c->u);
}
