#include "gf_quantize_linear_args.h"
typedef int8_t gf_integer;
typedef gf_quantize_linear_args gf_args;
#include "quantize.h"

void gf_quantize_linear(const void *args) { quantize(args); }
