#include "gf_dequantize_linear_i16_args.h"
typedef int16_t gf_integer;
typedef gf_dequantize_linear_i16_args gf_args;
#include "dequantize.h"

void gf_dequantize_linear_i16(const void *args) { dequantize(args); }
