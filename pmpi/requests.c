/* When nonblocking collectives are over: the entries of MPI_Wait, MPI_Test and their kin, which are
 * in the way only while there is a trace.
 *
 * A request of a nonblocking collective is watched from its start until one of these calls turns it
 * into MPI_REQUEST_NULL.
 */
#include "pmpi/trace.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct watched {
    MPI_Request request;
    uint64_t event;
} * watched;
static int count, room;
/* How many there are, to be looked at without the lock: mostly none. */
static atomic_int pending;

void collx_request_watch(MPI_Request request, uint64_t event)
{
    if (request == MPI_REQUEST_NULL || event == UINT64_MAX)
        return;
    pthread_mutex_lock(&lock);
    if (count == room) {
        int more = room ? 2 * room : 64;
        struct watched *bigger = realloc(watched, (size_t)more * sizeof *watched);
        if (bigger) {
            watched = bigger;
            room = more;
        }
    }
    if (count < room) {
        watched[count++] = (struct watched){request, event};
        atomic_store_explicit(&pending, count, memory_order_relaxed);
    }
    pthread_mutex_unlock(&lock);
}

static bool any(void)
{
    return atomic_load_explicit(&pending, memory_order_relaxed) > 0;
}

static void over(MPI_Request request)
{
    uint64_t event = UINT64_MAX;

    pthread_mutex_lock(&lock);
    for (int i = count - 1; i >= 0; i--) {
        if (watched[i].request == request) {
            event = watched[i].event;
            watched[i] = watched[--count];
            break;
        }
    }
    atomic_store_explicit(&pending, count, memory_order_relaxed);
    pthread_mutex_unlock(&lock);
    collx_trace_complete(event);
}

/* What the requests were before the call; NULL where nothing is watched or memory ran out. */
static MPI_Request *remember(const MPI_Request *requests, int n)
{
    if (n <= 0 || !requests || !any())
        return NULL;
    MPI_Request *before = malloc((size_t)n * sizeof *before);
    if (before)
        memcpy(before, requests, (size_t)n * sizeof *before);
    return before;
}

static void compare(MPI_Request *before, const MPI_Request *after, int n)
{
    for (int i = 0; before && i < n; i++)
        if (before[i] != MPI_REQUEST_NULL && after[i] == MPI_REQUEST_NULL)
            over(before[i]);
    free(before);
}

/* RECORDED(Name, parameters, arguments, requests, how many) */
#define RECORDED(Name, parameters, arguments, requests, n)                                         \
    static int traced_##Name parameters                                                            \
    {                                                                                              \
        int(*real) parameters = (int(*) parameters)collx_door.real[COLLX_ENTRY_##Name];            \
        MPI_Request *before = remember(requests, n);                                               \
        int error = real arguments;                                                                \
        compare(before, requests, n);                                                              \
        return error;                                                                              \
    }

RECORDED(Wait, (MPI_Request * request, MPI_Status *status), (request, status), request, 1)
RECORDED(Test, (MPI_Request * request, int *flag, MPI_Status *status), (request, flag, status),
         request, 1)
RECORDED(Waitall, (int n, MPI_Request *requests, MPI_Status *statuses), (n, requests, statuses),
         requests, n)
RECORDED(Testall, (int n, MPI_Request *requests, int *flag, MPI_Status *statuses),
         (n, requests, flag, statuses), requests, n)
RECORDED(Waitany, (int n, MPI_Request *requests, int *index, MPI_Status *status),
         (n, requests, index, status), requests, n)
RECORDED(Testany, (int n, MPI_Request *requests, int *index, int *flag, MPI_Status *status),
         (n, requests, index, flag, status), requests, n)
RECORDED(Waitsome, (int n, MPI_Request *requests, int *done, int *indices, MPI_Status *statuses),
         (n, requests, done, indices, statuses), requests, n)
RECORDED(Testsome, (int n, MPI_Request *requests, int *done, int *indices, MPI_Status *statuses),
         (n, requests, done, indices, statuses), requests, n)

void collx_requests_install(void)
{
#define INSTALL(Name) collx_door.route[COLLX_ENTRY_##Name] = (void *)traced_##Name
    INSTALL(Wait);
    INSTALL(Test);
    INSTALL(Waitall);
    INSTALL(Testall);
    INSTALL(Waitany);
    INSTALL(Testany);
    INSTALL(Waitsome);
    INSTALL(Testsome);
}
