#include "tests/cleared_view.h"

#include "algorithms/allreduce/allreduce.h"
#include "algorithms/within/long_ways.h"

#include <stdlib.h>
#include <string.h>

static long count_left(const unsigned char *memory, size_t bytes)
{
    long left = 0;

    for (size_t i = 0; i < bytes; i++)
        left += memory[i] != 0;
    return left;
}

long cleared_view_left(enum collx_kind kind, int ranks)
{
    const struct collx_algorithm *shm = collx_algorithm_find(kind, "shm");
    const struct collx_args args = {{0}}; /* auto, all of them */
    const struct collx_facts facts = {
        .ranks = ranks, .nodes = 1, .node_ranks_min = ranks, .node_ranks_max = ranks};
    const size_t space = shm->space(&facts, &args), ways = collx_long_ways_space(ranks),
                 pipe = collx_allreduce_pipe_space(ranks, facts.numa_nodes);
    unsigned char *memory = malloc(space);
    if (!memory)
        return -1;
    memset(memory, 0xa5, space);
    shm->clear(&facts, &args, memory);
    /* An Allreduce has its shares first, then a pipe. */
    const unsigned char *agreed = kind == COLLX_BCAST ? memory : memory + space - ways - pipe;
    const long left = count_left(agreed, COLLX_LINE) + count_left(memory + space - ways, ways);
    free(memory);
    return left;
}
