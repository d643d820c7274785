#include "gf_another_symbol_args.h"

void gf_another_simbol(const void *args);

void gf_another_simbol(const void *args) {
  const gf_another_symbol_args *a = args;
  const gf_range r = gf_share(a->n);
  for (int32_t j = r.begin; j < r.end; j++) a->y[j] = a->x[j];
}
