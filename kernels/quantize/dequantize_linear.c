#include "gf_dequantize_linear_args.h"
typedef int8_t gf_integer;
typedef gf_dequantize_linear_args gf_args;
#include "dequantize.h"

void gf_dequantize_linear(const void *args) { dequantize(args); }
