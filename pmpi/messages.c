#include "pmpi/messages.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <sched.h>

enum { TAG = 0, POLLS = 64 };

/* While MPI_Finalize deletes what hangs on communicators, none must be freed any more. */
static atomic_bool ending;

int collx_messages_open(struct collx_comm *comm)
{
    MPI_Errhandler handler;
    MPI_Group group;

    if (comm->has_messages)
        return MPI_SUCCESS;
    /* An MPI that has no communicator left for us must not end the program for it. */
    int error = pmpi.Comm_get_errhandler(comm->comm, &handler);
    if (error)
        return error;
    pmpi.Comm_set_errhandler(comm->comm, MPI_ERRORS_RETURN);
    error = pmpi.Comm_group(comm->comm, &group);
    if (!error) {
        error = pmpi.Comm_create(comm->comm, group, &comm->messages);
        pmpi.Group_free(&group);
    }
    pmpi.Comm_set_errhandler(comm->comm, handler);
    pmpi.Errhandler_free(&handler);
    if (error)
        return error;
    pmpi.Comm_set_errhandler(comm->messages, MPI_ERRORS_RETURN);
    comm->has_messages = true;
    return MPI_SUCCESS;
}

/* Once for a communicator and rank; another one may have something else to say. */
static void report_stall(struct collx_comm *comm, const MPI_Request *request, int to, int from,
                         uint64_t waited_ns)
{
    bool receives = request[0] != MPI_REQUEST_NULL;

    comm->team.stalled = true;
    collx_warn("rank %d of %s has waited %.0f s in a collective for a message %s rank %d. Has it "
               "stopped, or is it in another call? It goes on waiting (COLLX_STALL sets this time)",
               comm->rank, comm->team.name, (double)waited_ns / 1e9, receives ? "from" : "to",
               receives ? from : to);
}

/* Both requests come to their end, whatever becomes of them. */
static int finish(struct collx_comm *comm, MPI_Request *request, int to, int from)
{
    const uint64_t begin = collx_clock_ns();
    int error = MPI_SUCCESS;

    for (unsigned round = 1;; round++) {
        for (int i = 0; i < 2; i++) {
            int done, failed = pmpi.Test(&request[i], &done, MPI_STATUS_IGNORE);
            if (failed)
                request[i] = MPI_REQUEST_NULL;
            error = error ? error : failed;
        }
        if (request[0] == MPI_REQUEST_NULL && request[1] == MPI_REQUEST_NULL)
            return error;
        /* Ranks may outnumber the CPUs; nobody has counted, where there is no shared memory. */
        if (round > POLLS)
            sched_yield();
        if (round % 1024 == 0 && comm->team.stall_ms && !comm->team.stalled) {
            uint64_t waited = collx_clock_ns() - begin;
            if (waited / 1000000 > (uint64_t)comm->team.stall_ms)
                report_stall(comm, request, to, from, waited);
        }
    }
}

int collx_messages_exchange(void *ctx, int to, const void *sbuf, size_t sbytes, int from,
                            void *rbuf, size_t rbytes)
{
    struct collx_comm *comm = ctx;
    MPI_Request request[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL}; /* receive, send */
    int keep = errno, error = MPI_SUCCESS;

    if (rbytes)
        error = pmpi.Irecv(rbuf, (int)rbytes, MPI_BYTE, from, TAG, comm->messages, &request[0]);
    if (sbytes) {
        int failed = pmpi.Isend(sbuf, (int)sbytes, MPI_BYTE, to, TAG, comm->messages, &request[1]);
        error = error ? error : failed;
    }
    int failed = finish(comm, request, to, from);
    errno = keep;
    return error ? error : failed;
}

void collx_messages_close(struct collx_comm *comm)
{
    if (comm->has_messages && !atomic_load(&ending))
        pmpi.Comm_free(&comm->messages);
    comm->has_messages = false;
}

void collx_messages_end(bool now)
{
    atomic_store(&ending, now);
}
