#include "pmpi/where.h"

#include "algorithms/barrier/barrier_plan.h"
#include "base/launcher.h"
#include "base/log.h"
#include "base/options.h"
#include "hw/shm.h"
#include "pmpi/world.h"

#include <errno.h>
#include <pthread.h>

/* Where this rank is, and in `why` what is in the way of knowing it and has to be said. */
static struct collx_place find(int rank, char *why, size_t size)
{
    const char *description = collx_option_text(COLLX_OPTION_TOPOLOGY);
    struct collx_machine machine;
    struct collx_place place;

    int error = collx_place_find(collx_door.dir, description, rank, &machine, &place, why, size);
    /* Built without hwloc: nobody has to be told again, unless he asks for what it does. */
    if (!error || (error == -ENOENT && !*description))
        *why = '\0';
    return place;
}

static struct collx_place place_own(const struct collx_comm *comm)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static struct collx_place own;
    static bool known;
    int local = collx_launcher_local_ranks();
    char why[COLLX_WHY_MAX] = "";

    if (comm->size <= COLLX_RADIX_MAX || (local && comm->size > local))
        return COLLX_NOWHERE;
    pthread_mutex_lock(&lock);
    if (!known) {
        /* Without the lock: it loads a library.  A thread that loads one holds the loader's lock,
         * and its constructor may be here, too. */
        pthread_mutex_unlock(&lock);
        struct collx_place found = find(collx_world_rank(comm), why, sizeof why);
        pthread_mutex_lock(&lock);
        if (known)
            *why = '\0';
        else
            own = found;
        known = true;
    }
    struct collx_place place = own;
    pthread_mutex_unlock(&lock);
    if (*why && collx_launcher_first())
        collx_warn("%s. Meanwhile no account is taken of shared caches", why);
    return place;
}

struct collx_where collx_where_own(const struct collx_comm *comm)
{
    int64_t size = collx_option_number(COLLX_OPTION_NODE_SIZE);
    uint64_t node = collx_shm_node();

    if (size > 0)
        node ^= (uint64_t)(1 + collx_world_rank(comm) / size) * 0x9e3779b97f4a7c15u;
    return (struct collx_where){.node = node, .place = place_own(comm)};
}

void collx_where_facts(const struct collx_where *where, int ranks, struct collx_facts *facts,
                       struct collx_place *places, struct collx_member *members, int *node)
{
    for (int rank = 0; rank < ranks; rank++) {
        places[rank] = where[rank].place;
        members[rank] = (struct collx_member){where[rank].node, rank};
    }
    collx_facts_init(facts, members, ranks, node);
    /* Between nodes the numbers of places mean nothing. */
    facts->numa_nodes = facts->nodes == 1 ? collx_places_numa_nodes(places, ranks) : 1;
    facts->places = facts->nodes == 1 ? places : NULL;
}

void collx_where_common(const struct collx_where *where, const int *node, int ranks, int rank,
                        uint64_t spare[COLLX_SPARES])
{
    for (int other = 0; other < ranks; other++)
        for (int i = 0; i < COLLX_SPARES && node[other] == node[rank]; i++)
            if (!collx_spares_include(where[other].spare, spare[i]))
                spare[i] = 0;
}
