/* What the files of Bcast share. */
#ifndef COLLX_ALGORITHMS_BCAST_H
#define COLLX_ALGORITHMS_BCAST_H

#include "algorithms/single.h"
#include "base/call.h"

/* Bcast of `bytes` bytes in order at `buf`, in one copy; `buf` is NULL on a rank that has no memory
 * for them.  `help`: the root copies, too; the same on all ranks.  Returns 0, or, where such a rank
 * is the root, collx_mpi_ops.no_memory. */
int collx_bcast_single(struct collx_single *single, int root, void *buf, size_t bytes, bool help);

#endif
