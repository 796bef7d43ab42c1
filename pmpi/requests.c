/* When requests are over: the entries of MPI_Wait, MPI_Test and their kin, which are in the way
 * only where there may be something to do then.
 *
 * A request is watched from the start of its operation until one of these calls turns it into
 * MPI_REQUEST_NULL.  MPI may give its handle to the next one before that call has come back to us
 * here, in another thread; so what is over is always the one that has been watched longest: as many
 * as are over have come to their end.
 */
#include "pmpi/requests.h"

#include "pmpi/trace.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct watched {
    MPI_Request request;
    uint64_t event; /* UINT64_MAX: none */
    void *memory;   /* to be freed */
} * watched;
static int count, room;
/* How many there are, to be looked at without the lock: mostly none. */
static atomic_int pending;

/* What there is no memory to note is never over. */
static void watch(struct watched one)
{
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
        watched[count++] = one;
        atomic_store_explicit(&pending, count, memory_order_relaxed);
    }
    pthread_mutex_unlock(&lock);
}

void collx_request_watch(MPI_Request request, uint64_t event)
{
    if (request != MPI_REQUEST_NULL && event != UINT64_MAX)
        watch((struct watched){request, event, NULL});
}

void collx_request_keep(MPI_Request request, void *memory)
{
    if (request == MPI_REQUEST_NULL)
        free(memory);
    else if (memory)
        watch((struct watched){request, UINT64_MAX, memory});
}

static bool any(void)
{
    return atomic_load_explicit(&pending, memory_order_relaxed) > 0;
}

static void over(MPI_Request request)
{
    uint64_t event = UINT64_MAX;
    void *memory = NULL;
    int left = 0;

    pthread_mutex_lock(&lock);
    for (int i = 0; i < count; i++) {
        const struct watched *one = &watched[i];
        if (one->request == request && one->memory && !memory)
            memory = one->memory;
        else if (one->request == request && !one->memory && event == UINT64_MAX)
            event = one->event;
        else
            watched[left++] = *one;
    }
    count = left;
    atomic_store_explicit(&pending, count, memory_order_relaxed);
    pthread_mutex_unlock(&lock);
    free(memory);
    if (event != UINT64_MAX)
        collx_trace_complete(event);
}

/* What the requests were before the call; NULL where there is none, or memory ran out. */
static MPI_Request *remember(const MPI_Request *requests, int n)
{
    MPI_Request *before = n > 0 && requests ? malloc((size_t)n * sizeof *before) : NULL;

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

/* SEEN(Name, parameters, arguments, requests, how many) */
#define SEEN(Name, parameters, arguments, requests, n)                                             \
    static int seen_##Name parameters                                                              \
    {                                                                                              \
        int(*real) parameters = (int(*) parameters)collx_door.real[COLLX_ENTRY_##Name];            \
        if (!any())                                                                                \
            return real arguments;                                                                 \
        MPI_Request *before = remember(requests, n);                                               \
        int error = real arguments;                                                                \
        compare(before, requests, n);                                                              \
        return error;                                                                              \
    }

SEEN(Wait, (MPI_Request * request, MPI_Status *status), (request, status), request, 1)
SEEN(Test, (MPI_Request * request, int *flag, MPI_Status *status), (request, flag, status), request,
     1)
SEEN(Waitall, (int n, MPI_Request *requests, MPI_Status *statuses), (n, requests, statuses),
     requests, n)
SEEN(Testall, (int n, MPI_Request *requests, int *flag, MPI_Status *statuses),
     (n, requests, flag, statuses), requests, n)
SEEN(Waitany, (int n, MPI_Request *requests, int *index, MPI_Status *status),
     (n, requests, index, status), requests, n)
SEEN(Testany, (int n, MPI_Request *requests, int *index, int *flag, MPI_Status *status),
     (n, requests, index, flag, status), requests, n)
SEEN(Waitsome, (int n, MPI_Request *requests, int *done, int *indices, MPI_Status *statuses),
     (n, requests, done, indices, statuses), requests, n)
SEEN(Testsome, (int n, MPI_Request *requests, int *done, int *indices, MPI_Status *statuses),
     (n, requests, done, indices, statuses), requests, n)

SEEN(Request_free, (MPI_Request * request), (request), request, 1)

void collx_requests_install(void)
{
#define INSTALL(Name) collx_door.route[COLLX_ENTRY_##Name] = (void *)seen_##Name
    INSTALL(Wait);
    INSTALL(Test);
    INSTALL(Waitall);
    INSTALL(Testall);
    INSTALL(Waitany);
    INSTALL(Testany);
    INSTALL(Waitsome);
    INSTALL(Testsome);
    INSTALL(Request_free);
#undef INSTALL
}
