/* A setup's steps 4 and 5 (setup.c), as far as they are about algorithms and their memory: the
 * segment, what lies where in it, and the algorithms that are attached to it, connected, and
 * detached again.
 */
#include "pmpi/setup_state.h"

#include "algorithms/crowd.h"
#include "base/hash.h"
#include "pmpi/agree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Its piece of the segment; NULL: it needs none, or there is no segment. */
static void *memory_of(const struct collx_comm *comm, const struct collx_wanted *wanted)
{
    return wanted->space && comm->routes.segment ? (char *)comm->routes.segment + wanted->offset
                                                 : NULL;
}

/* What place() depends on. */
static uint64_t layout_of(const struct collx_setup *setup)
{
    const struct collx_facts *facts = &setup->comm->routes.facts;
    uint64_t hash = COLLX_HASH_START;

    if (facts->numa_nodes == 1)
        return hash;
    for (const struct collx_wanted *each = setup->wanted;
         each < setup->wanted + setup->wanted_count; each++) {
        hash = collx_hash(hash, &each->algorithm, sizeof each->algorithm);
        hash = collx_hash(hash, &each->args, sizeof each->args);
    }
    return collx_hash(hash, setup->places, (size_t)setup->comm->size * sizeof *setup->places);
}

/* Before the memory of the segment is allocated. */
static void place(const struct collx_setup *setup)
{
    const struct collx_comm *comm = setup->comm;

    for (size_t i = 0; i < setup->wanted_count && comm->routes.facts.numa_nodes > 1; i++) {
        const struct collx_wanted *wanted = &setup->wanted[i];
        const struct collx_algorithm *algorithm = collx_algorithms[wanted->algorithm];
        void *memory = memory_of(comm, wanted);

        if (memory && algorithm->place)
            algorithm->place(comm->routes.team, &wanted->args, memory);
    }
}

/* Of a segment that was another communicator's. */
static void clear(const struct collx_setup *setup)
{
    const struct collx_comm *comm = setup->comm;
    const size_t kept = offsetof(struct collx_crowd, stall_said);

    memset((char *)comm->routes.segment + kept, 0, sizeof(struct collx_crowd) - kept);
    for (size_t i = 0; i < setup->wanted_count; i++) {
        const struct collx_wanted *wanted = &setup->wanted[i];
        const struct collx_algorithm *algorithm = collx_algorithms[wanted->algorithm];
        void *memory = memory_of(comm, wanted);

        if (memory && algorithm->clear)
            algorithm->clear(&comm->routes.facts, &wanted->args, memory);
        else if (memory)
            memset(memory, 0, wanted->space);
    }
}

/* The leader: one that all have still from before, or a new one. */
static int find_or_make_segment(const struct collx_setup *setup, size_t size, uint64_t layout,
                                struct collx_segment_address *address)
{
    struct collx_comm *comm = setup->comm;
    uint64_t spare[COLLX_SPARES];

    memcpy(spare, setup->where[comm->rank].spare, sizeof spare);
    collx_where_common(setup->where, setup->node, comm->size, comm->rank, spare);
    if (!setup->has_told && collx_segment_reuse(comm, size, layout, spare, address)) {
        clear(setup);
        return 0;
    }
    int error = collx_segment_make(comm, size, layout);
    if (error)
        return error;
    place(setup);
    return collx_segment_allocate(comm, address);
}

/* Everybody hears where the leader of its node has its segment. */
static int find_segment(struct collx_setup *setup, struct collx_segment_address *address)
{
    struct collx_comm *comm = setup->comm;

    if (comm->routes.facts.nodes == 1)
        return collx_agree_from_zero(comm, address, sizeof *address);
    int error = collx_agree_from_all(comm, address, setup->addresses, sizeof *address);
    *address = setup->addresses[comm->routes.leader];
    return error;
}

int collx_setup_map(struct collx_setup *setup, size_t size, int *failed)
{
    struct collx_comm *comm = setup->comm;
    struct collx_segment_address address = {0};
    const bool leads = comm->rank == comm->routes.leader;
    const uint64_t layout = layout_of(setup);

    if (leads)
        address.error = find_or_make_segment(setup, size, layout, &address);
    int error = find_segment(setup, &address);
    setup->has_told = true;
    *failed = address.error;
    if (!leads && !error && !address.error)
        *failed = collx_segment_open(comm, size, layout, &address);
    return error;
}

void collx_setup_attach(struct collx_setup *setup)
{
    struct collx_comm *comm = setup->comm;

    if (comm->routes.segment)
        collx_crowd_join(comm->routes.segment, comm->rank);
    comm->routes.attached = calloc(setup->wanted_count, sizeof *comm->routes.attached);
    if (!comm->routes.attached) {
        setup->refused.algorithms |= COLLX_REFUSED_ALL;
        return;
    }
    for (size_t i = 0; i < setup->wanted_count; i++) {
        const struct collx_wanted *wanted = &setup->wanted[i];
        const struct collx_algorithm *algorithm = collx_algorithms[wanted->algorithm];
        struct collx_attached *attached = &comm->routes.attached[comm->routes.attached_count];
        void *memory = memory_of(comm, wanted);

        if (wanted->space && !memory)
            continue;
        if (!algorithm->attach(comm->routes.team, &wanted->args, memory, &attached->slot)) {
            attached->algorithm = algorithm;
            attached->args = wanted->args;
            attached->route = (uint8_t)(wanted->algorithm + 1);
            comm->routes.attached_count++;
        } else {
            setup->refused.algorithms |= (uint64_t)1 << wanted->algorithm;
        }
    }
    for (int kind = 0; kind < COLLX_ROUTED; kind++)
        if (collx_select_prepare(comm, (enum collx_kind)kind, setup->choice[kind],
                                 setup->count[kind]))
            setup->refused.algorithms |= COLLX_REFUSED_ALL;
}

/* With these parameters.  Where there are too many such, with any: that is the same on all ranks.
 */
static void refuse_use(struct collx_setup *setup, const struct collx_attached *attached,
                       const char *why)
{
    struct collx_refused *refused = &setup->refused;

    for (int i = 0; i < refused->uses; i++)
        if (refused->use[i].algorithm == attached->algorithm &&
            !memcmp(&refused->use[i].args, &attached->args, sizeof attached->args))
            return;
    if (refused->uses == COLLX_REFUSED_MAX) {
        refused->algorithms |= (uint64_t)1 << (attached->route - 1);
        return;
    }
    refused->use[refused->uses].algorithm = attached->algorithm;
    refused->use[refused->uses].args = attached->args;
    snprintf(refused->use[refused->uses++].why, COLLX_WHY_MAX, "%s", why);
}

int collx_setup_connect(struct collx_setup *setup, bool *again)
{
    enum { WORDS = (COLLX_WANTED + 63) / 64 };
    _Static_assert(WORDS <= (int)COLLX_AGREE_WORDS, "they are agreed on at once");
    struct collx_comm *comm = setup->comm;
    /* Own reasons, if there are any; of what failed elsewhere there is none.  Without memory nobody
     * hears them. */
    char(*own)[COLLX_WHY_MAX] = NULL;
    uint64_t failed[WORDS] = {0};
    bool any = false;

    for (int i = 0; i < comm->routes.attached_count; i++) {
        struct collx_attached *attached = &comm->routes.attached[i];
        char why[COLLX_WHY_MAX] = "it could not be set up";

        if (!attached->algorithm->connect)
            continue;
        any = true;
        if (attached->algorithm->connect(comm->routes.team, &attached->slot, why, sizeof why)) {
            failed[i / 64] |= (uint64_t)1 << i % 64;
            own = own ? own : calloc((size_t)comm->routes.attached_count, sizeof *own);
            if (own)
                memcpy(own[i], why, sizeof why);
        }
    }
    int error = any ? collx_agree_any(comm, failed, WORDS) : 0;
    /* In the same order on all ranks: not all may find room among the refused. */
    for (int i = 0; !error && i < comm->routes.attached_count; i++)
        if (failed[i / 64] >> i % 64 & 1) {
            *again = true;
            refuse_use(setup, &comm->routes.attached[i],
                       own && *own[i] ? own[i] : "another rank could not set it up");
        }
    free(own);
    return error;
}

void collx_setup_detach(struct collx_routes *routes)
{
    for (int kind = 0; kind < COLLX_ROUTED; kind++) {
        free(routes->selection[kind]);
        routes->selection[kind] = NULL;
    }
    while (routes->attached_count) {
        struct collx_attached *attached = &routes->attached[--routes->attached_count];
        attached->algorithm->detach(attached->slot.state);
    }
    free(routes->attached);
    routes->attached = NULL;
}
