/* gf_conv_sums.h for int8: int32 sums of what x is above its zero point. */
#ifndef GF_CONV_I8_H
#define GF_CONV_I8_H
#include "gf_macs.h"
typedef int8_t gf_element;
typedef gf_vi32 gf_sums;
#define gf_conv_macs(acc, blocks, x, zero, weight, block, run) gf_macs_i8(acc, GF_PIXELS, blocks, x, zero, weight, 0, block, GF_BLOCK, run)
#include "gf_conv_sums.h"
#endif
