/* Messages between the ranks of a team, for algorithms that said listen() when they connected. */
#ifndef COLLX_ALGORITHMS_MESSAGES_H
#define COLLX_ALGORITHMS_MESSAGES_H

#include "base/algorithm.h"

/* For connect(): make up to `messages` at once possible.  0, or an MPI error and why. */
int collx_listen(struct collx_team *team, int messages, char *why, size_t size);

/* Send `sbytes` bytes to team rank `to`, and receive `rbytes` from team rank `from`, at the same
 * time.  Where a size is 0 there is no message that way, and its rank and buffer are not looked at.
 * The buffers do not overlap.  0 or an MPI error. */
static inline int collx_exchange(struct collx_team *team, int to, const void *sbuf, size_t sbytes,
                                 int from, void *rbuf, size_t rbytes)
{
    struct collx_message message[2];
    int count = 0;

    if (rbytes)
        message[count++] = (struct collx_message){from, false, rbuf, rbytes};
    if (sbytes)
        message[count++] = (struct collx_message){to, true, (void *)(uintptr_t)sbuf, sbytes};
    return count ? team->ops->transfer(team->ctx, message, count) : 0;
}

#endif
