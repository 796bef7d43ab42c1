/* Has an MPI library have a communicator whose ranks are the threads of its processes, two of each,
 * as MPICH has them from 4.2 on: for a Barrier, and for Allreduces of one MPI_INT with MPI_SUM.
 * Loaded like wide_integers.c. */
#include "real.h"

#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>

enum { THREADS = 2 };

int MPIX_Threadcomm_init(MPI_Comm comm, int count, MPI_Comm *made);
int MPIX_Threadcomm_free(MPI_Comm *comm);
int MPIX_Threadcomm_start(MPI_Comm comm);
int MPIX_Threadcomm_finish(MPI_Comm comm);

static MPI_Comm threads = MPI_COMM_NULL;
static pthread_barrier_t all_here;
static atomic_int started;
static _Thread_local int own;
static int part[THREADS];

int MPIX_Threadcomm_init(MPI_Comm comm, int count, MPI_Comm *made)
{
    pthread_barrier_init(&all_here, NULL, THREADS);
    PMPI_Comm_dup(comm, made);
    threads = *made;
    return count == THREADS ? MPI_SUCCESS : MPI_ERR_ARG;
}

int MPIX_Threadcomm_free(MPI_Comm *comm)
{
    threads = MPI_COMM_NULL;
    pthread_barrier_destroy(&all_here);
    return PMPI_Comm_free(comm);
}

int MPIX_Threadcomm_start(MPI_Comm comm)
{
    (void)comm;
    own = atomic_fetch_add(&started, 1);
    pthread_barrier_wait(&all_here);
    return MPI_SUCCESS;
}

int MPIX_Threadcomm_finish(MPI_Comm comm)
{
    (void)comm;
    pthread_barrier_wait(&all_here);
    return MPI_SUCCESS;
}

int PMPI_Comm_size(MPI_Comm comm, int *size)
{
    const int error = REAL(PMPI_Comm_size)(comm, size);

    if (!error && comm == threads)
        *size *= THREADS;
    return error;
}

int PMPI_Comm_rank(MPI_Comm comm, int *rank)
{
    const int error = REAL(PMPI_Comm_rank)(comm, rank);

    if (!error && comm == threads)
        *rank = *rank * THREADS + own;
    return error;
}

/* Which the program calls past collx. */
int MPI_Comm_size(MPI_Comm comm, int *size)
{
    return PMPI_Comm_size(comm, size);
}

int MPI_Comm_rank(MPI_Comm comm, int *rank)
{
    return PMPI_Comm_rank(comm, rank);
}

int PMPI_Barrier(MPI_Comm comm)
{
    int error = MPI_SUCCESS;

    if (comm != threads)
        return REAL(PMPI_Barrier)(comm);
    pthread_barrier_wait(&all_here);
    if (own == 0)
        error = REAL(PMPI_Barrier)(comm);
    pthread_barrier_wait(&all_here);
    return error;
}

int PMPI_Allreduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op,
                   MPI_Comm comm)
{
    int error = MPI_SUCCESS, sum = 0;

    if (comm != threads)
        return REAL(PMPI_Allreduce)(in, out, count, type, op, comm);
    if (count != 1 || type != MPI_INT || op != MPI_SUM)
        return MPI_ERR_UNSUPPORTED_OPERATION;
    part[own] = *(const int *)in;
    pthread_barrier_wait(&all_here);
    if (own == 0) {
        for (int i = 0; i < THREADS; i++)
            sum += part[i];
        error = REAL(PMPI_Allreduce)(&sum, &part[0], 1, MPI_INT, MPI_SUM, comm);
    }
    pthread_barrier_wait(&all_here);
    *(int *)out = part[0];
    pthread_barrier_wait(&all_here);
    return error;
}
