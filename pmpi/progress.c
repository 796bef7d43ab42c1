#include "pmpi/progress.h"

#include "pmpi/comm.h"
#include "pmpi/world.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

/* Requests not in use.  MPI does not let two threads test the same one, so there are as many as
 * threads have waited at a time. */
static MPI_Request *spares;
static int count, room;
/* Guards the spares.  Never held across a call into MPI. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Guards making the communicator; nothing that MPI calls takes it. */
static pthread_mutex_t self_lock = PTHREAD_MUTEX_INITIALIZER;
static MPI_Comm self;
static bool made;
/* There has been a communicator of several ranks, without which nothing can be pending.  Before
 * MPICH 4.0 has made one it crashes where it is to make progress. */
static _Atomic bool several;

/* MPI_Comm_create_group of Open MPI hands on what the program has hung on `comm`: its callbacks
 * would be called for a communicator that it does not know.  MPI_Comm_split does not, but all of
 * `comm` have to take part in it.  A program with sessions has no MPI_COMM_SELF. */
static MPI_Comm parent(MPI_Comm comm)
{
    return collx_world_up() ? MPI_COMM_SELF : comm;
}

static int make_of_group(MPI_Comm comm, int rank)
{
    MPI_Group all, own;
    int error = pmpi.Comm_group(comm, &all);

    if (error)
        return error;
    error = pmpi.Group_incl(all, 1, &rank, &own);
    pmpi.Group_free(&all);
    if (!error) {
        error = pmpi.Comm_create_group(comm, own, 0, &self);
        pmpi.Group_free(&own);
    }
    return error;
}

/* A communicator of this rank alone, out of `comm`, which it is in.  Where there is no other rank
 * MPICH 4.0 makes none of a group: it takes MPI_COMM_WORLD for that, which a program with sessions
 * does not have, and crashes. */
static int make_self(MPI_Comm comm)
{
    /* Out of MPI_COMM_SELF it is made in MPI_Init, when MPI has communicators left. */
    const bool hushes = comm != MPI_COMM_SELF;
    MPI_Errhandler handler;
    int rank, size, error = hushes ? collx_comm_hush(comm, &handler) : MPI_SUCCESS;

    if (error)
        return error;
    pmpi.Comm_rank(comm, &rank);
    pmpi.Comm_size(comm, &size);
    error = size == 1 ? pmpi.Comm_split(comm, 0, 0, &self) : make_of_group(comm, rank);
    if (hushes)
        collx_comm_unhush(comm, &handler);
    if (!error)
        pmpi.Comm_set_errhandler(self, MPI_ERRORS_RETURN);
    return error;
}

static bool is_of_several(MPI_Comm comm)
{
    int size = 0;

    return collx_world_up() || (!pmpi.Comm_size(comm, &size) && size > 1);
}

int collx_self_init(MPI_Comm comm)
{
    int error = MPI_SUCCESS;

    pthread_mutex_lock(&self_lock);
    if (!atomic_load_explicit(&several, memory_order_relaxed))
        atomic_store_explicit(&several, is_of_several(comm), memory_order_relaxed);
    if (!made)
        error = make_self(parent(comm));
    made = made || !error;
    pthread_mutex_unlock(&self_lock);
    return error;
}

MPI_Comm collx_self(void)
{
    return self;
}

static MPI_Request take(void)
{
    static char nowhere;
    MPI_Request request = MPI_REQUEST_NULL;

    pthread_mutex_lock(&lock);
    if (count)
        request = spares[--count];
    pthread_mutex_unlock(&lock);
    if (request == MPI_REQUEST_NULL && pmpi.Irecv(&nowhere, 0, MPI_BYTE, 0, 0, self, &request))
        request = MPI_REQUEST_NULL;
    return request;
}

/* False: it could not be kept. */
static bool give(MPI_Request request)
{
    pthread_mutex_lock(&lock);
    if (count == room) {
        MPI_Request *more = realloc(spares, (size_t)(room + 8) * sizeof(MPI_Request));
        if (more) {
            spares = more;
            room += 8;
        }
    }
    bool kept = count < room;
    if (kept)
        spares[count++] = request;
    pthread_mutex_unlock(&lock);
    return kept;
}

static void cancel(MPI_Request request)
{
    pmpi.Cancel(&request);
    pmpi.Wait(&request, MPI_STATUS_IGNORE);
}

void collx_progress(void)
{
    int done;

    if (!atomic_load_explicit(&several, memory_order_relaxed))
        return;
    MPI_Request request = take();
    if (request == MPI_REQUEST_NULL) {
        pmpi.Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, self, &done, MPI_STATUS_IGNORE);
        return;
    }
    /* Never fulfilled; what counts is what MPI does meanwhile. */
    pmpi.Test(&request, &done, MPI_STATUS_IGNORE);
    if (!give(request))
        cancel(request);
}

void collx_self_finish(bool callable)
{
    pthread_mutex_lock(&self_lock);
    if (made && callable) {
        while (count)
            cancel(spares[--count]);
        pmpi.Comm_free(&self);
    }
    count = 0;
    made = false;
    atomic_store_explicit(&several, false, memory_order_relaxed);
    pthread_mutex_unlock(&self_lock);
}
