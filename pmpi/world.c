#include "pmpi/world.h"

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

/* Relaxed: it orders nothing. */
static atomic_bool has_one_thread;

void collx_world_keep(void)
{
    int level;

    if (!pmpi.Query_thread(&level))
        atomic_store_explicit(&has_one_thread, level <= MPI_THREAD_FUNNELED, memory_order_relaxed);
    if (!pmpi.Comm_group(MPI_COMM_WORLD, &world))
        /* Release: a thread that sees it uses the group. */
        atomic_store_explicit(&has_world, true, memory_order_release);
}

bool collx_world_has_one_thread(void)
{
    return atomic_load_explicit(&has_one_thread, memory_order_relaxed);
}

bool collx_world_has(const struct collx_comm *comm, int *there)
{
    enum { SOME = 64 };
    MPI_Group group;
    int from[SOME], to[SOME], done = 0;
    bool all = true;

    /* Acquire: pairs with the release in collx_world_keep(). */
    if (!atomic_load_explicit(&has_world, memory_order_acquire) ||
        pmpi.Comm_group(comm->comm, &group))
        return false;
    while (all && done < comm->size) {
        int count = comm->size - done < SOME ? comm->size - done : SOME;
        for (int i = 0; i < count; i++)
            from[i] = done + i;
        all = !pmpi.Group_translate_ranks(group, count, from, world, to);
        for (int i = 0; i < count; i++)
            all = all && to[i] != MPI_UNDEFINED;
        if (there)
            memcpy(&there[done], to, (size_t)count * sizeof to[0]);
        done += count;
    }
    pmpi.Group_free(&group);
    return all;
}

void collx_world_finish(void)
{
    /* Acquire, as in collx_world_has(): the group that is freed is the one that was kept. */
    if (atomic_exchange_explicit(&has_world, false, memory_order_acquire))
        pmpi.Group_free(&world);
}
