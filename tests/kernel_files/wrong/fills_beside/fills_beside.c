#include "gf_fills_beside_args.h"

/* What is filled runs on, as if the tile were the whole tensor. */
void gf_fills_beside(const void *args) {
  const gf_fills_beside_args *a = args;
  gf_range all = gf_share(a->i[0] * a->i[1] * a->i[2] * a->i[3]);
  for (int32_t j = all.begin; j < all.end; j++) a->y[j] = a->value;
}
