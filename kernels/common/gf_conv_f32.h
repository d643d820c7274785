/* gf_conv_sums.h for floats. */
#ifndef GF_CONV_F32_H
#define GF_CONV_F32_H
#include "gf_macs.h"
typedef float gf_element;
typedef gf_vf32 gf_sums;
#define gf_conv_macs(acc, blocks, x, zero, weight, block, run) gf_macs_f32(acc, GF_PIXELS, blocks, x, weight, block, GF_BLOCK, run)
#include "gf_conv_sums.h"
#endif
