/* The reduction kernels, compiled once for each instruction set from kernels.c. */
#ifndef COLLX_KERNELS_H
#define COLLX_KERNELS_H

#include "base/call.h"

/* One version of all kernels; NULL where an operation is not for that type. */
struct collx_kernel_table {
    collx_reduce_fn *kernel[COLLX_ELEMS][COLLX_OP_COUNT];
};

extern const struct collx_kernel_table collx_kernels_c;
#if defined(__x86_64__)
extern const struct collx_kernel_table collx_kernels_avx2, collx_kernels_avx512;
#endif

#endif
