#include "algorithms/within/shm.h"

#include "base/error.h"

#include <stdio.h>

int collx_query_one_node(const struct collx_facts *facts, const struct collx_args *args, char *why,
                         size_t size)
{
    (void)args;
    if (facts->nodes == 1)
        return 0;
    snprintf(why, size, "the communicator spans %d nodes, and it is for one", facts->nodes);
    return COLLX_EUNFIT;
}

uint32_t collx_shm_agree(_Atomic uint32_t *agreed, const struct collx_copy_ways *cpu)
{
    const uint32_t own = COLLX_SHM_AGREED | (cpu->whole_lines ? COLLX_SHM_WHOLE_LINES : 0) |
                         (cpu->returnable ? COLLX_SHM_RETURNABLE : 0) |
                         (cpu->swings ? COLLX_SHM_SWINGS : 0);
    uint32_t known = 0;

    /* Relaxed: nothing else comes with it. */
    return atomic_compare_exchange_strong_explicit(agreed, &known, own, memory_order_relaxed,
                                                   memory_order_relaxed)
               ? own
               : known;
}
