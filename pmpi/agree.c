#include "pmpi/agree.h"

#include "base/clock.h"
#include "base/job.h"
#include "base/log.h"
#include "base/options.h"
#include "pmpi/world.h"

#include <limits.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Rank 0 speaks for all, but may be the one without collx: the others are patient for twice as
 * long, and then speak for their nodes, that of rank 0 only if it has not. */
static void report_wait(struct collx_comm *comm, int64_t waited_ms, int *claim)
{
    char host[HOST_NAME_MAX + 1] = "";

    if (!collx_job_first_here("waits", claim) && comm->rank != 0)
        return;
    gethostname(host, sizeof host - 1);
    if (!*comm->label)
        collx_comm_name(comm);
    collx_warn("the ranks of %s%s%s have been waiting for %s to agree on their routes. Does "
               "every rank run under collx%s, and has each of them come to this call? With Open "
               "MPI's mpirun, remote nodes need -x LD_PRELOAD",
               comm->label, comm->rank ? " on " : "", comm->rank ? host : "",
               collx_clock_text((uint64_t)waited_ms * 1000000).text,
               comm->rank ? ", also rank 0" : "");
}

/* To ask whether to let others have the CPU takes as long as several polls: where all have come,
 * none of these is needed. */
enum { POLLS = 32 };

static int finish(struct collx_comm *comm, MPI_Request *request)
{
    struct collx_waited waited = {.last = collx_clock_ns()};
    int64_t patience = collx_option_number(COLLX_OPTION_STALL) * (comm->rank ? 2 : 1);
    bool said = patience == 0;
    int done = 0, claim = -1, error;

    for (unsigned round = 1; !(error = pmpi.Test(request, &done, MPI_STATUS_IGNORE)) && !done;
         round++) {
        if (round < POLLS)
            continue;
        if (round % 64 == 0 && !said &&
            (int64_t)(collx_waited_look(&waited, collx_clock_ns()) / 1000000) > patience) {
            said = true;
            report_wait(comm, patience, &claim);
        }
        sched_yield();
    }
    if (claim >= 0)
        close(claim);
    return error;
}

static bool is_done;

void collx_agree_world_met(void)
{
    is_done = true;
}

/* Remembered: an MPI library may take as long as the communicator has ranks times the job.  Where
 * it cannot tell, as it has no memory left, the other ranks mostly say yes. */
bool collx_agree_has_met(struct collx_comm *comm)
{
    if (is_done && comm->met == COLLX_MET_UNKNOWN)
        comm->met = collx_world_lacks(comm) ? COLLX_MET_NOT : COLLX_MET;
    return comm->met == COLLX_MET;
}

/* Who is alone need not ask, and must not: MPICH may not be ready to wait for anything, see
 * pmpi/progress.c. */
static bool is_alone(const struct collx_comm *comm)
{
    return comm->size == 1;
}

/* Open MPI numbers the nonblocking collectives of a communicator as a rank begins them, and an
 * MPI_Comm_idup of it, which the program may have on its way, begins some when its rank comes to
 * that: now before one of ours, now after it.  Those that block have nothing to do with these. */
static bool may_block(struct collx_comm *comm)
{
#ifdef OPEN_MPI
    return collx_agree_has_met(comm);
#else
    (void)comm; /* waiting ranks would not let others have the CPU */
    return false;
#endif
}

int collx_agree_from_all(struct collx_comm *comm, const void *own, void *all, size_t bytes)
{
    MPI_Request request;

    if (is_alone(comm)) {
        memcpy(all, own, bytes);
        return MPI_SUCCESS;
    }
    if (may_block(comm))
        return pmpi.Allgather(own, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, comm->comm);
    int error =
        pmpi.Iallgather(own, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, comm->comm, &request);

    return error ? error : finish(comm, &request);
}

int collx_agree_from_zero(struct collx_comm *comm, void *data, size_t bytes)
{
    MPI_Request request;

    if (is_alone(comm))
        return MPI_SUCCESS;
    if (may_block(comm))
        return pmpi.Bcast(data, (int)bytes, MPI_BYTE, 0, comm->comm);
    int error = pmpi.Ibcast(data, (int)bytes, MPI_BYTE, 0, comm->comm, &request);

    return error ? error : finish(comm, &request);
}

#ifdef MPICH
/* Up to so many ranks by other means than a reduction of MPICH's: that takes 133 KiB of the
 * caller's stack, and a thread that calls none has perhaps less. */
enum { GATHERED = 1024 };

static int gather_any(struct collx_comm *comm, uint64_t *words, int count)
{
    /* Who has no memory left says so by this as well; threads that have none take turns. */
    static uint64_t reserve[GATHERED * COLLX_AGREE_WORDS];
    static atomic_flag is_taken = ATOMIC_FLAG_INIT;
    uint64_t *own = calloc((size_t)comm->size * (size_t)count, sizeof *own);
    uint64_t *all = own ? own : reserve;

    /* Acquire, and release below: a turn comes after all of the one before. */
    while (!own && atomic_flag_test_and_set_explicit(&is_taken, memory_order_acquire))
        sched_yield();
    int error = collx_agree_from_all(comm, words, all, (size_t)count * sizeof *words);
    for (int i = 0; !error && i < comm->size * count; i++)
        words[i % count] |= all[i];
    if (!own)
        atomic_flag_clear_explicit(&is_taken, memory_order_release);
    free(own);
    return error;
}
#endif

int collx_agree_any(struct collx_comm *comm, uint64_t *words, int count)
{
    MPI_Request request;
    uint64_t all[COLLX_AGREE_WORDS];
    int error;

    if (is_alone(comm))
        return MPI_SUCCESS;
#ifdef MPICH
    if (comm->size <= GATHERED)
        return gather_any(comm, words, count);
#endif
    if (may_block(comm))
        return pmpi.Allreduce(MPI_IN_PLACE, words, count, MPI_UINT64_T, MPI_BOR, comm->comm);
    error = pmpi.Iallreduce(words, all, count, MPI_UINT64_T, MPI_BOR, comm->comm, &request);
    error = error ? error : finish(comm, &request);
    if (!error)
        memcpy(words, all, (size_t)count * sizeof *all);
    return error;
}

#ifdef OPEN_MPI
/* A message to one rank, and one from another. */
static int swap(struct collx_comm *world, int to, const uint64_t *out, int from, uint64_t *in,
                int count)
{
    enum { TAG = 0 };
    MPI_Request received, sent;
    int error = pmpi.Irecv(in, count, MPI_UINT64_T, from, TAG, world->comm, &received);

    if (error)
        return error;
    error = pmpi.Isend(out, count, MPI_UINT64_T, to, TAG, world->comm, &sent);
    if (error) {
        pmpi.Cancel(&received);
        pmpi.Wait(&received, MPI_STATUS_IGNORE);
        return error;
    }
    error = finish(world, &received);
    const int unsent = finish(world, &sent);
    return error ? error : unsent;
}

int collx_agree_first(struct collx_comm *world, uint64_t *words, int count)
{
    uint64_t others[COLLX_AGREE_WORDS];
    int error = MPI_SUCCESS;

    /* Twice a distance, and a rank and one more, may be more than an int can count. */
    for (int64_t distance = 1; !error && distance < world->size; distance *= 2) {
        const int to = (int)((world->rank + distance) % world->size);
        const int from = (int)((world->rank + world->size - distance) % world->size);

        error = swap(world, to, words, from, others, count);
        for (int i = 0; !error && i < count; i++)
            words[i] |= others[i];
    }
    return error;
}
#else
int collx_agree_first(struct collx_comm *world, uint64_t *words, int count)
{
    return collx_agree_any(world, words, count);
}
#endif
