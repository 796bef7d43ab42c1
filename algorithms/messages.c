#include "algorithms/messages.h"

#include <errno.h>
#include <stdio.h>

int collx_listen(struct collx_team *team, int messages, char *why, size_t size)
{
    int error = team->ops->listen(team->ctx, messages);

    /* What a lender says that is no MPI library. */
    if (error == -ENOTSUP)
        snprintf(why, size, "there is no way to send messages");
    else if (error)
        snprintf(why, size,
                 "the MPI library has no communicator left for its messages, or no "
                 "memory");
    return error;
}
