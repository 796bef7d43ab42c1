/* Combining what the ranks of an Allreduce contribute, always rank 0, 1, 2, … from the left. */
#ifndef COLLX_COMBINE_H
#define COLLX_COMBINE_H

#include "base/algorithm.h"

/* result = from[0] op from[1] op … for `count` > 0 elements that have bytes (a call without any has
 * nothing to combine and returns before), packed like `result`; `from` has one operand for each of
 * the team's ranks, at least two; this rank's is not looked at if `own` is not NULL, where it lies
 * with its gaps.  `result` may be from[0], of two ranks from[1] as well, of contiguous elements
 * without a kernel any of them, and else overlaps none.  Local.  0 or an MPI error; then `result`
 * is whatever it is. */
int collx_combine(struct collx_team *team, struct collx_call *call, unsigned char *const *from,
                  const char *own, int64_t count, unsigned char *result);

/* `own` for that: this rank's operand where the program has it, from the `first`-th element on.
 * NULL: it has to be packed. */
const char *collx_combine_own(const struct collx_call *call, int64_t first);

/* The Allreduce of one rank: what it contributes is what it gets.  0 or an MPI error. */
int collx_combine_alone(struct collx_team *team, struct collx_call *call);

#endif
