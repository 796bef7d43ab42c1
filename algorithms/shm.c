#include "algorithms/shm.h"

#include "base/error.h"

#include <stdio.h>

int collx_query_one_node(const struct collx_facts *facts, char *why, size_t size)
{
    if (facts->nodes == 1)
        return 0;
    snprintf(why, size, "the communicator spans %d nodes; shm needs all ranks on one",
             facts->nodes);
    return COLLX_EUNFIT;
}
