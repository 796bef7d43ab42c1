/* Reduction kernels for the types and operations that programs mostly use. */
#ifndef COLLX_REDUCE_H
#define COLLX_REDUCE_H

#include "base/call.h"

/* The kernel for that operation on that type, or NULL: then MPI's own reduction does it.  All
 * operations that have one are commutative (to the bit, but for NaNs and the sign of zeros in a
 * minimum or maximum); none is associative in floating point, so the order is the caller's. */
collx_reduce_fn *collx_reduce_kernel(enum collx_op op, enum collx_elem elem);

#endif
