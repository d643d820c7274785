/* Quotient of two broadcasting operands, clamped. */
#include "gf_div_f32_args.h"
typedef gf_div_f32_args gf_args;
#define gf_op(a, b) ((a) / (b))
#include "arith.h"

void gf_div_f32(const void *args) { arith(args); }
