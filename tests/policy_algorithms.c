/* A registry for the tests of policies: algorithms that are nothing but their description, so that
 * those tests do not change with what collx can do. */
#include "base/algorithm.h"
#include "base/error.h"

#include <stdio.h>
#include <string.h>

static int one_node(const struct collx_facts *facts, const struct collx_args *args, char *why,
                    size_t size)
{
    (void)args;
    if (facts->nodes == 1)
        return 0;
    snprintf(why, size, "spans %d nodes; shm needs all ranks on one", facts->nodes);
    return COLLX_EUNFIT;
}

static int ports(const struct collx_facts *facts, const struct collx_args *args, char *why,
                 size_t size)
{
    if (args->value[0] <= facts->ranks)
        return 0;
    snprintf(why, size, "n is more than the ranks");
    return COLLX_EUNFIT;
}

static int connect_nothing(struct collx_team *team, struct collx_slot *slot, char *why, size_t size)
{
    (void)team, (void)slot, (void)why, (void)size;
    return 0;
}

static bool small_elements(const void *state, const struct collx_call *call)
{
    (void)state;
    return call->elem_bytes < 100;
}

static const char *const modes[] = {"notify", "exchange", NULL};

static const struct collx_param nx_params[] = {
    {"n", "messages a round", 2, 1, 64, NULL},
    {"mode", "what a round does", 0, 0, 1, modes},
    {NULL, NULL, 0, 0, 0, NULL},
};

/* The same name, other parameters: what they have in common stands elsewhere. */
static const struct collx_param nx_barrier_params[] = {
    {"early", "rounds", 1, 0, 9, NULL},
    {"n", "messages a round", 3, 1, 32, NULL},
    {NULL, NULL, 0, 0, 0, NULL},
};

static const struct collx_param shm_params[] = {
    {"copies", "of what is long", 0, 0, 2, NULL},
    {NULL, NULL, 0, 0, 0, NULL},
};

static const struct collx_algorithm all[] = {
    {.name = "shm", .kind = COLLX_BARRIER, .query = one_node},
    {.name = "shm", .kind = COLLX_BCAST, .query = one_node},
    {.name = "shm",
     .kind = COLLX_ALLREDUCE,
     .query = one_node,
     .rank_order = true,
     .takes = small_elements,
     .params = shm_params},
    {.name = "nx",
     .kind = COLLX_BARRIER,
     .query = ports,
     .params = nx_barrier_params,
     .connect = connect_nothing},
    {.name = "nx", .kind = COLLX_ALLREDUCE, .query = ports, .params = nx_params},
    {.name = "tree", .kind = COLLX_BCAST, .query = ports},
    {.name = "ordered", .kind = COLLX_ALLREDUCE, .query = ports, .rank_order = true},
    {.name = "tree", .kind = COLLX_ALLREDUCE, .rank_order = true, .takes = small_elements},
    {.name = "hsb", .kind = COLLX_ALLREDUCE, .rank_order = true, .takes = small_elements},
    {.name = "ring", .kind = COLLX_ALLREDUCE, .rank_order = true, .takes = small_elements},
};

const struct collx_algorithm *const collx_algorithms[] = {
    &all[0], &all[1], &all[2], &all[3], &all[4], &all[5], &all[6], &all[7], &all[8], &all[9], NULL};

const struct collx_algorithm *collx_algorithm_find(enum collx_kind kind, const char *name)
{
    for (unsigned i = 0; collx_algorithms[i]; i++)
        if (collx_algorithms[i]->kind == kind && strcmp(collx_algorithms[i]->name, name) == 0)
            return collx_algorithms[i];
    return NULL;
}

uint64_t collx_algorithms_hash(void)
{
    return 1;
}
