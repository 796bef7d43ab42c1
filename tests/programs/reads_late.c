/* Has an MPI library look at the counts and displacements of a call once more at its end, as it
 * may: they must be what they were.  And gives it a persistent MPI_Alltoallv, which moves nothing,
 * if it has none.  Loaded like wide_integers.c. */
#include "real.h"

#include "tests/programs/check.h"

#include <mpi.h>

#include <string.h>

enum { ARRAYS = 4, MOST = 8, CALLS = 1000 };

static struct call {
    const int *given[ARRAYS];
    int was[ARRAYS][MOST];
    MPI_Request request; /* a persistent one */
} calls[CALLS];
static int count, size;

static void note(const int *const given[], MPI_Request request)
{
    struct call *call = &calls[count++];

    CHECK(count <= CALLS);
    PMPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < ARRAYS; i++) {
        call->given[i] = given[i];
        memcpy(call->was[i], given[i], (size_t)size * sizeof(int));
    }
    call->request = request;
}

static void look(const struct call *call)
{
    for (int i = 0; i < ARRAYS; i++)
        CHECK(!memcmp(call->given[i], call->was[i], (size_t)size * sizeof(int)));
}

int PMPI_Ialltoallv(const void *sendbuf, const int *sendcounts, const int *sdispls,
                    MPI_Datatype sendtype, void *recvbuf, const int *recvcounts, const int *rdispls,
                    MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request)
{
    note((const int *[]){sendcounts, sdispls, recvcounts, rdispls}, MPI_REQUEST_NULL);
    return REAL(PMPI_Ialltoallv)(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts,
                                 rdispls, recvtype, comm, request);
}

/* For all that have been started. */
int PMPI_Waitall(int n, MPI_Request *requests, MPI_Status *statuses)
{
    const int error = REAL(PMPI_Waitall)(n, requests, statuses);

    while (count > 0)
        look(&calls[--count]);
    return error;
}

int PMPI_Alltoallv_init(const void *sendbuf, const int *sendcounts, const int *sdispls,
                        MPI_Datatype sendtype, void *recvbuf, const int *recvcounts,
                        const int *rdispls, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
                        MPI_Request *request)
{
    (void)sendbuf, (void)sendtype, (void)recvtype, (void)info;
    const int error = REAL(PMPI_Recv_init)(recvbuf, 0, MPI_BYTE, MPI_PROC_NULL, 0, comm, request);

    note((const int *[]){sendcounts, sdispls, recvcounts, rdispls}, *request);
    return error;
}

int PMPI_Request_free(MPI_Request *request)
{
    for (int i = 0; i < count; i++)
        if (calls[i].request == *request) {
            look(&calls[i]);
            calls[i] = calls[--count];
            break;
        }
    return REAL(PMPI_Request_free)(request);
}
