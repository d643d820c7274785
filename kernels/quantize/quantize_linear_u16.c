#include "gf_quantize_linear_u16_args.h"
typedef uint16_t gf_integer;
typedef gf_quantize_linear_u16_args gf_args;
#include "quantize.h"

void gf_quantize_linear_u16(const void *args) { quantize(args); }
