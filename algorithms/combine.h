/* Combining what the ranks of an Allreduce contribute, always rank 0, 1, 2, … from the left. */
#ifndef COLLX_COMBINE_H
#define COLLX_COMBINE_H

#include "base/algorithm.h"

/* result = from[0] op from[1] op … for `count` elements, packed like `result`; `from` has one
 * operand for each of the team's ranks, at least two.  `result` may be from[0], of two ranks
 * from[1] as well, of contiguous elements without a kernel any of them, and else overlaps none.
 * Local.  0 or an MPI error; then `result` is whatever it is. */
int collx_combine(struct collx_team *team, struct collx_call *call, unsigned char *const *from,
                  int64_t count, unsigned char *result);

/* Whether collx_combine_own() can: without a kernel, of two ranks, with known gaps. */
bool collx_combines_own(const struct collx_team *team, const struct collx_call *call);

/* The same for `count` elements from the `first`-th on, of which the other rank's lie packed at
 * `other`, and ours where the program has them: so they are packed less often.  `result` may be
 * `other`. */
int collx_combine_own(struct collx_team *team, struct collx_call *call, int64_t first,
                      int64_t count, const unsigned char *other, unsigned char *result);

/* The Allreduce of one rank: what it contributes is what it gets.  0 or an MPI error. */
int collx_combine_alone(struct collx_team *team, struct collx_call *call);

#endif
