/* The same tensor in another storage order. */
#include "gf_copy_args.h"
#include "gf_copy_any.h"

void gf_copy(const void *args) {
  const gf_copy_args *a = args;
  gf_copy_any(a->i, a->x, a->x_s, a->y, a->y_s, a->T_bytes);
}
