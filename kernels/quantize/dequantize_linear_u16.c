#include "gf_dequantize_linear_u16_args.h"
typedef uint16_t gf_integer;
typedef gf_dequantize_linear_u16_args gf_args;
#include "dequantize.h"

void gf_dequantize_linear_u16(const void *args) { dequantize(args); }
