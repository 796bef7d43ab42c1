/* What the files of Bcast share. */
#ifndef COLLX_ALGORITHMS_BCAST_H
#define COLLX_ALGORITHMS_BCAST_H

#include "algorithms/within/single.h"
#include "base/call.h"

/* Bcast of `bytes` bytes in order at `buf`, in one copy; `buf` is NULL on a rank that has no memory
 * for them.  `help`: the root copies, too; the same on all ranks.  Returns 0, or, where such a rank
 * is the root, collx_lender_ops.no_memory. */
int collx_bcast_single(struct collx_single *single, int root, void *buf, size_t bytes, bool help);

/* A Bcast of `bytes` bytes in order, from or to `buf`; NULL: this rank has no memory for them, and
 * does all the same what others expect of it.  Returns 0 or an error of MPI's. */
typedef int collx_bcast_bytes_fn(void *state, int root, void *buf, size_t bytes);

/* Up to here there is always memory for what collx_bcast_packed() packs. */
enum { COLLX_BCAST_BOUNCE = 4096 };

/* Bcast of a datatype that is not simply bytes in order: everything is packed first and unpacked
 * last, since root and leaves may cut the same bytes into different elements.  Returns 0 or the
 * first error; the others get zeros from a root that cannot pack. */
int collx_bcast_packed(struct collx_team *team, struct collx_call *call,
                       collx_bcast_bytes_fn *run_bytes, void *state);

#endif
