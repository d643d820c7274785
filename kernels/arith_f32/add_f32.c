/* Sum of two broadcasting operands, clamped. */
#include "gf_add_f32_args.h"
typedef gf_add_f32_args gf_args;
#define gf_op(a, b) ((a) + (b))
#include "arith.h"

void gf_add_f32(const void *args) { arith(args); }
