#include "pmpi/messages.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "pmpi/agree.h"
#include "pmpi/lifetime.h"
#include "pmpi/world.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>

enum { POLLS = 64 };

/* That of all processes of MPI_COMM_WORLD, until it ends. */
static MPI_Comm shared;
static bool has_shared;
/* So far, that this process gave to communicators whose rank 0 it is. */
static _Atomic int64_t tags;

/* While MPI_Finalize deletes what hangs on communicators, none must be freed any more.  Of the
 * thread that called it: another one may have a session. */
static _Thread_local bool ending;

/* With the ranks of `comm`, in the same order. */
static int make_like(MPI_Comm comm, MPI_Comm *made)
{
    MPI_Group group;
    int error = pmpi.Comm_group(comm, &group);

    if (!error) {
        error = pmpi.Comm_create(comm, group, made);
        pmpi.Group_free(&group);
    }
    if (!error)
        pmpi.Comm_set_errhandler(*made, MPI_ERRORS_RETURN);
    return error;
}

/* In MPI_Init, when MPI has communicators left: its error handler need not be touched. */
void collx_messages_begin(void)
{
    has_shared = !make_like(MPI_COMM_WORLD, &shared);
}

/* Unlike that of any other communicator that shares it: no two processes give the same ones.  -1:
 * there is none left. */
static int new_tag(void)
{
    int size, rank, found = 0, *most = NULL;

    pmpi.Comm_rank(MPI_COMM_WORLD, &rank);
    pmpi.Comm_size(MPI_COMM_WORLD, &size);
    pmpi.Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &most, &found);
    const int64_t tag = rank + size * atomic_fetch_add_explicit(&tags, 1, memory_order_relaxed);
    return found && tag <= *most ? (int)tag : -1;
}

bool collx_messages_can_share(void)
{
    /* It ends with MPI_COMM_WORLD, and a session's communicator may not. */
    return has_shared && collx_world_up() && !collx_sessions_any();
}

/* What all ranks tell; all are combined by bitwise or. */
struct told {
    uint64_t cannot;
    uint64_t tag; /* from rank 0 */
};
enum { TOLD_WORDS = sizeof(struct told) / sizeof(uint64_t) };

/* Take part in the one of all, if all ranks can; else messages->ear stays NULL.  0 or an MPI error.
 */
static int share(struct collx_comm *comm, struct collx_messages *messages)
{
    struct told told = {0};
    int *ear = malloc((size_t)comm->size * sizeof *ear);
    bool can = ear && collx_messages_can_share() && collx_world_has(comm, ear);

    if (can && comm->rank == 0) {
        const int tag = new_tag();
        can = tag >= 0;
        told.tag = can ? (uint64_t)tag : 0;
    }
    told.cannot = !can;
    int error = collx_agree_any(comm, (uint64_t *)&told, TOLD_WORDS);
    if (error || told.cannot) {
        free(ear);
        return error;
    }
    messages->comm = shared;
    messages->tag = (int)told.tag;
    messages->ear = ear;
    return MPI_SUCCESS;
}

/* Make one for it alone: all ranks have it then, or none. */
static int make_own(struct collx_comm *comm, struct collx_messages *messages)
{
    MPI_Errhandler handler;
    int error = collx_comm_hush(comm->comm, &handler);

    if (!error) {
        error = make_like(comm->comm, &messages->comm);
        collx_comm_unhush(comm->comm, &handler);
    }
    uint64_t failed = error != 0;
    const bool made = !error;

    error = collx_agree_any(comm, &failed, 1);
    error = error ? error : failed ? MPI_ERR_NO_MEM : MPI_SUCCESS;
    if (error && made)
        pmpi.Comm_free(&messages->comm);
    messages->tag = 0;
    return error;
}

int collx_messages_open(struct collx_comm *comm)
{
    struct collx_messages *messages = &comm->routes.messages;

    if (messages->open)
        return MPI_SUCCESS;
    int error = share(comm, messages);
    if (!error && !messages->ear)
        error = make_own(comm, messages);
    messages->open = !error;
    return error;
}

int collx_messages_listen(void *ctx, int count)
{
    struct collx_comm *comm = ctx;
    struct collx_messages *messages = &comm->routes.messages;
    int error = collx_messages_open(comm);

    /* Not in transfer(), where those that count on our messages would wait for ever. */
    if (count > messages->requests) {
        MPI_Request *more = realloc(messages->request, (size_t)count * sizeof(MPI_Request));
        if (!more)
            return MPI_ERR_NO_MEM;
        messages->request = more;
        messages->requests = count;
    }
    return error;
}

/* Once for a communicator and rank; another one may have something else to say. */
static void report_stall(struct collx_comm *comm, bool sends, struct collx_missing *missing,
                         uint64_t waited_ns)
{
    comm->routes.team->stalled = true;
    collx_warn("rank %d of %s has waited %s in a collective for a message %s %s. Has it "
               "stopped, or is it in another call? It goes on waiting (COLLX_STALL sets this time)",
               comm->rank, comm->routes.team->name, collx_clock_text(waited_ns).text,
               sends ? "to" : "from", collx_missing_text(missing));
}

/* To have them reported: whom this rank waits for, of those whose messages it wants, if there are
 * any, or else to have its own. */
static void find_missing(struct collx_comm *comm, const struct collx_message *messages, int count,
                         const struct collx_patience *patience, uint64_t waited_ns)
{
    struct collx_missing missing = {.count = 0};
    bool sends = true;

    for (int i = 0; i < count; i++)
        sends =
            sends && (comm->routes.messages.request[i] == MPI_REQUEST_NULL || messages[i].sends);
    for (int i = 0; i < count; i++)
        if (comm->routes.messages.request[i] != MPI_REQUEST_NULL && messages[i].sends == sends)
            collx_missing_add(&missing, comm->routes.team, messages[i].rank);
    patience->report(comm, sends, &missing, waited_ns);
}

/* All requests come to their end, whatever becomes of them. */
static int finish(struct collx_comm *comm, const struct collx_message *messages, int count,
                  const struct collx_patience *patience)
{
    struct collx_waited waited = {.last = collx_clock_ns()};
    int error = MPI_SUCCESS, open = 0;
    bool said = patience->ms == 0;

    for (unsigned round = 1;; round++) {
        for (int i = open; i < count; i++) {
            int done,
                failed = pmpi.Test(&comm->routes.messages.request[i], &done, MPI_STATUS_IGNORE);
            if (failed)
                comm->routes.messages.request[i] = MPI_REQUEST_NULL;
            error = collx_error_first(error, failed);
        }
        while (open < count && comm->routes.messages.request[open] == MPI_REQUEST_NULL)
            open++;
        if (open == count)
            return error;
        /* Ranks may outnumber the CPUs; nobody has counted, where there is no shared memory. */
        if (round > POLLS)
            sched_yield();
        if (round % POLLS == 0 && !said) {
            const uint64_t ns = collx_waited_look(&waited, collx_clock_ns());
            said = ns / 1000000 > (uint64_t)patience->ms;
            if (said)
                find_missing(comm, messages, count, patience, ns);
        }
    }
}

static int post(const struct collx_messages *by, const struct collx_message *message,
                MPI_Request *request)
{
    const int rank = by->ear ? by->ear[message->rank] : message->rank;

    *request = MPI_REQUEST_NULL;
    if (message->sends)
        return pmpi.Isend(message->data, (int)message->bytes, MPI_BYTE, rank, by->tag, by->comm,
                          request);
    return pmpi.Irecv(message->data, (int)message->bytes, MPI_BYTE, rank, by->tag, by->comm,
                      request);
}

int collx_messages_exchange(struct collx_comm *comm, const struct collx_message *messages,
                            int count, const struct collx_patience *patience)
{
    int keep = errno, error = MPI_SUCCESS;

    for (int i = 0; i < count; i++) {
        int failed = post(&comm->routes.messages, &messages[i], &comm->routes.messages.request[i]);
        error = collx_error_first(error, failed);
    }
    int failed = finish(comm, messages, count, patience);
    errno = keep;
    return error ? error : failed;
}

int collx_messages_transfer(void *ctx, const struct collx_message *messages, int count)
{
    struct collx_comm *comm = ctx;
    const struct collx_team *team = comm->routes.team;
    const struct collx_patience patience = {team->stalled ? 0 : team->stall_ms, report_stall};

    return collx_messages_exchange(comm, messages, count, &patience);
}

void collx_messages_close(struct collx_messages *messages)
{
    if (messages->open && !messages->ear && !ending)
        pmpi.Comm_free(&messages->comm);
    free(messages->ear);
    free(messages->request);
    *messages = (struct collx_messages){.open = false};
}

void collx_messages_end(bool now)
{
    ending = now;
}
