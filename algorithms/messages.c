#include "algorithms/messages.h"

#include <stdio.h>

int collx_listen(struct collx_team *team, int messages, char *why, size_t size)
{
    int error = team->ops->listen(team->ctx, messages);

    if (error)
        snprintf(why, size,
                 "the MPI library has no communicator left for its messages, or no "
                 "memory");
    return error;
}
