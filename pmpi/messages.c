#include "pmpi/messages.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

enum { TAG = 0, POLLS = 64 };

/* While MPI_Finalize deletes what hangs on communicators, none must be freed any more.  Of the
 * thread that called it: another one may have a session. */
static _Thread_local bool ending;

int collx_messages_open(struct collx_comm *comm)
{
    MPI_Errhandler handler;
    MPI_Group group;

    if (comm->has_messages)
        return MPI_SUCCESS;
    int error = collx_comm_hush(comm->comm, &handler);
    if (error)
        return error;
    error = pmpi.Comm_group(comm->comm, &group);
    if (!error) {
        error = pmpi.Comm_create(comm->comm, group, &comm->messages);
        pmpi.Group_free(&group);
    }
    collx_comm_unhush(comm->comm, &handler);
    if (error)
        return error;
    pmpi.Comm_set_errhandler(comm->messages, MPI_ERRORS_RETURN);
    comm->has_messages = true;
    return MPI_SUCCESS;
}

int collx_messages_listen(void *ctx, int messages)
{
    struct collx_comm *comm = ctx;
    int error = collx_messages_open(comm);

    /* Not in transfer(), where those that count on our messages would wait for ever. */
    if (messages > comm->requests) {
        MPI_Request *more = realloc(comm->request, (size_t)messages * sizeof(MPI_Request));
        if (!more)
            return MPI_ERR_NO_MEM;
        comm->request = more;
        comm->requests = messages;
    }
    return error;
}

/* Once for a communicator and rank; another one may have something else to say. */
static void report_stall(struct collx_comm *comm, const struct collx_message *messages, int count,
                         uint64_t waited_ns)
{
    char who[256];
    int length = 0, missing = 0;
    bool sends = true;

    for (int i = 0; i < count; i++)
        sends = sends && (comm->request[i] == MPI_REQUEST_NULL || messages[i].sends);
    for (int i = 0; i < count; i++)
        if (comm->request[i] != MPI_REQUEST_NULL && messages[i].sends == sends && missing++ < 16)
            length += snprintf(who + length, sizeof who - (size_t)length, " %d", messages[i].rank);
    comm->team.stalled = true;
    collx_warn(
        "rank %d of %s has waited %.0f s in a collective for a message %s rank%s%s%s. Has it "
        "stopped, or is it in another call? It goes on waiting (COLLX_STALL sets this time)",
        comm->rank, comm->team.name, (double)waited_ns / 1e9, sends ? "to" : "from",
        missing == 1 ? "" : "s", who, missing > 16 ? " and others" : "");
}

/* All requests come to their end, whatever becomes of them. */
static int finish(struct collx_comm *comm, const struct collx_message *messages, int count)
{
    const uint64_t begin = collx_clock_ns();
    int error = MPI_SUCCESS, open = 0;

    for (unsigned round = 1;; round++) {
        for (int i = open; i < count; i++) {
            int done, failed = pmpi.Test(&comm->request[i], &done, MPI_STATUS_IGNORE);
            if (failed)
                comm->request[i] = MPI_REQUEST_NULL;
            error = error ? error : failed;
        }
        while (open < count && comm->request[open] == MPI_REQUEST_NULL)
            open++;
        if (open == count)
            return error;
        /* Ranks may outnumber the CPUs; nobody has counted, where there is no shared memory. */
        if (round > POLLS)
            sched_yield();
        if (round % 1024 == 0 && comm->team.stall_ms && !comm->team.stalled) {
            uint64_t waited = collx_clock_ns() - begin;
            if (waited / 1000000 > (uint64_t)comm->team.stall_ms)
                report_stall(comm, messages, count, waited);
        }
    }
}

static int post(struct collx_comm *comm, const struct collx_message *message, MPI_Request *request)
{
    *request = MPI_REQUEST_NULL;
    if (message->sends)
        return pmpi.Isend(message->data, (int)message->bytes, MPI_BYTE, message->rank, TAG,
                          comm->messages, request);
    return pmpi.Irecv(message->data, (int)message->bytes, MPI_BYTE, message->rank, TAG,
                      comm->messages, request);
}

int collx_messages_transfer(void *ctx, const struct collx_message *messages, int count)
{
    struct collx_comm *comm = ctx;
    int keep = errno, error = MPI_SUCCESS;

    for (int i = 0; i < count; i++) {
        int failed = post(comm, &messages[i], &comm->request[i]);
        error = error ? error : failed;
    }
    int failed = finish(comm, messages, count);
    errno = keep;
    return error ? error : failed;
}

void collx_messages_close(struct collx_comm *comm)
{
    if (comm->has_messages && !ending)
        pmpi.Comm_free(&comm->messages);
    comm->has_messages = false;
    free(comm->request);
    comm->request = NULL;
    comm->requests = 0;
}

void collx_messages_end(bool now)
{
    ending = now;
}
