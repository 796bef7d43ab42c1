/* Reduction kernels for the types and operations that programs mostly use. */
#ifndef COLLX_REDUCE_H
#define COLLX_REDUCE_H

#include "base/call.h"
#include "base/parse.h"

/* The kernel for that operation on that type, or NULL: then MPI's own reduction does it.  All
 * operations that have one are commutative (to the bit, but for NaNs, of which the left one comes
 * out, but of MINLOC and MAXLOC the right one, and for the sign of zeros in a minimum or maximum);
 * none is associative in floating point, so the order is the caller's.
 *
 * It is of the widest version that this CPU and COLLX_KERNELS allow.  All give the same bits. */
collx_reduce_fn *collx_reduce_kernel(enum collx_op op, enum collx_elem elem);

/* The same, of one version; NULL for all if this CPU cannot run it. */
collx_reduce_fn *collx_reduce_kernel_of(enum collx_kernels version, enum collx_op op,
                                        enum collx_elem elem);

/* The version that collx_reduce_kernel() takes. */
enum collx_kernels collx_reduce_version(void);

#endif
