#include "pmpi/progress.h"

#include <pthread.h>
#include <stdlib.h>

/* Requests not in use, as a stack. */
struct spare {
    struct spare *next;
    MPI_Request request;
};

/* Guards the spares.  Never held across a call into MPI, which may itself be waiting to give us a
 * request back (see pmpi/comm.c). */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct spare *spares;

/* Guards making the communicator; nothing that MPI calls takes it. */
static pthread_mutex_t self_lock = PTHREAD_MUTEX_INITIALIZER;
static MPI_Comm self;
static bool made;

int collx_self_init(MPI_Comm comm)
{
    MPI_Group all, own;
    int error = MPI_SUCCESS, rank;

    pthread_mutex_lock(&self_lock);
    if (!made) {
        error = pmpi.Comm_group(comm, &all);
        if (!error) {
            pmpi.Comm_rank(comm, &rank);
            error = pmpi.Group_incl(all, 1, &rank, &own);
            if (!error) {
                error = pmpi.Comm_create_group(comm, own, 0, &self);
                pmpi.Group_free(&own);
            }
            pmpi.Group_free(&all);
        }
        if (!error) {
            pmpi.Comm_set_errhandler(self, MPI_ERRORS_RETURN);
            made = true;
        }
    }
    pthread_mutex_unlock(&self_lock);
    return error;
}

MPI_Comm collx_self(void)
{
    return self;
}

MPI_Request collx_progress_take(void)
{
    static char nowhere;
    MPI_Request request = MPI_REQUEST_NULL;

    pthread_mutex_lock(&lock);
    struct spare *spare = spares;
    if (spare)
        spares = spare->next;
    pthread_mutex_unlock(&lock);

    if (spare) {
        request = spare->request;
        free(spare);
    } else if (made && pmpi.Irecv(&nowhere, 0, MPI_BYTE, 0, 0, self, &request)) {
        request = MPI_REQUEST_NULL;
    }
    return request;
}

void collx_progress_give(MPI_Request request)
{
    struct spare *spare;

    if (request == MPI_REQUEST_NULL || !(spare = malloc(sizeof *spare)))
        return;
    spare->request = request;
    pthread_mutex_lock(&lock);
    spare->next = spares;
    spares = spare;
    pthread_mutex_unlock(&lock);
}

void collx_self_finish(void)
{
    pthread_mutex_lock(&lock);
    struct spare *all = spares;
    spares = NULL;
    pthread_mutex_unlock(&lock);

    while (all) {
        struct spare *spare = all;
        all = spare->next;
        pmpi.Cancel(&spare->request);
        pmpi.Wait(&spare->request, MPI_STATUS_IGNORE);
        free(spare);
    }
    pthread_mutex_lock(&self_lock);
    if (made)
        pmpi.Comm_free(&self);
    made = false;
    pthread_mutex_unlock(&self_lock);
}
