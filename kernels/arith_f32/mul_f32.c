/* Product of two broadcasting operands, clamped. */
#include "gf_mul_f32_args.h"
typedef gf_mul_f32_args gf_args;
#define gf_op(a, b) ((a) * (b))
#include "arith.h"

void gf_mul_f32(const void *args) { arith(args); }
