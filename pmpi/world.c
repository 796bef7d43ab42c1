#include "pmpi/world.h"

#include "pmpi/lifetime.h"
#include "pmpi/pmpi.h"

#include <stdatomic.h>
#include <string.h>

bool collx_world_up(void)
{
    int initialized = 0, finalized = 0;

    return !pmpi.Initialized(&initialized) && initialized && !pmpi.Finalized(&finalized) &&
           !finalized;
}

int collx_world_rank(const struct collx_comm *comm)
{
    int rank = comm->rank;

    if (collx_world_up())
        pmpi.Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}

/* Its processes, as long as MPI_COMM_WORLD or a session can be used. */
static MPI_Group world;
static atomic_bool has_world;

/* What the program may do with threads; unless it has said so, all.  Relaxed: it orders nothing. */
static atomic_int level = MPI_THREAD_MULTIPLE;

void collx_world_keep(void)
{
    int provided;

    if (!pmpi.Query_thread(&provided))
        atomic_store_explicit(&level, provided, memory_order_relaxed);
    if (!pmpi.Comm_group(MPI_COMM_WORLD, &world))
        /* Release: a thread that sees it uses the group. */
        atomic_store_explicit(&has_world, true, memory_order_release);
}

bool collx_world_survives(void)
{
    return pmpi.survives && *pmpi.survives;
}

bool collx_world_has_one_thread(void)
{
    return atomic_load_explicit(&level, memory_order_relaxed) <= MPI_THREAD_FUNNELED;
}

bool collx_world_has_threads(void)
{
    return atomic_load_explicit(&level, memory_order_relaxed) == MPI_THREAD_MULTIPLE ||
           collx_sessions_any();
}

/* Whether all ranks of `comm` are in `whole`; UNKNOWN: MPI does not tell, maybe here alone. */
static enum { LACKS, HAS, UNKNOWN } look(MPI_Group whole, const struct collx_comm *comm, int *there)
{
    enum { SOME = 64 };
    MPI_Group group;
    int from[SOME], to[SOME], done = 0, error = MPI_SUCCESS;
    bool all = true;

    if (pmpi.Comm_group(comm->comm, &group))
        return UNKNOWN;
    while (all && !error && done < comm->size) {
        int count = comm->size - done < SOME ? comm->size - done : SOME;
        for (int i = 0; i < count; i++)
            from[i] = done + i;
        error = pmpi.Group_translate_ranks(group, count, from, whole, to);
        for (int i = 0; i < count && !error; i++)
            all = all && to[i] != MPI_UNDEFINED;
        if (there && !error)
            memcpy(&there[done], to, (size_t)count * sizeof to[0]);
        done += count;
    }
    pmpi.Group_free(&group);
    return error ? UNKNOWN : all ? HAS : LACKS;
}

/* Acquire: pairs with the release in collx_world_keep(). */
static bool is_kept(void)
{
    return atomic_load_explicit(&has_world, memory_order_acquire);
}

bool collx_world_has(const struct collx_comm *comm, int *there)
{
    return is_kept() && look(world, comm, there) == HAS;
}

bool collx_world_lacks(const struct collx_comm *comm)
{
    MPI_Group own;

    if (is_kept())
        return look(world, comm, NULL) == LACKS;
    /* It has come up past collx. */
    if (!collx_world_up() || pmpi.Comm_group(MPI_COMM_WORLD, &own))
        return false;
    const bool lacks = look(own, comm, NULL) == LACKS;
    pmpi.Group_free(&own);
    return lacks;
}

void collx_world_finish(bool callable)
{
    /* Acquire, as in is_kept(): the group that is freed is the one that was kept. */
    if (atomic_exchange_explicit(&has_world, false, memory_order_acquire) && callable)
        pmpi.Group_free(&world);
}
