#include "gf_quantize_linear_i16_args.h"
typedef int16_t gf_integer;
typedef gf_quantize_linear_i16_args gf_args;
#include "quantize.h"

void gf_quantize_linear_i16(const void *args) { quantize(args); }
