#include "pmpi/agree.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/options.h"

#include <sched.h>
#include <string.h>

static int finish(const struct collx_comm *comm, MPI_Request *request)
{
    uint64_t begin = collx_clock_ns();
    int64_t patience = collx_option_number(COLLX_OPTION_STALL);
    bool said = patience == 0;
    int done = 0, error;

    for (unsigned round = 1; !(error = pmpi.Test(request, &done, MPI_STATUS_IGNORE)) && !done;
         round++) {
        if (round % 64 == 0 && !said &&
            (int64_t)((collx_clock_ns() - begin) / 1000000) > patience) {
            said = true;
            if (comm->rank == 0)
                collx_warn("the ranks of %s have been waiting for %.0f s to agree on their routes. "
                           "Does every rank run under collx? With Open MPI's mpirun, remote nodes "
                           "need -x LD_PRELOAD",
                           comm->team.name, (double)patience / 1e3);
        }
        sched_yield();
    }
    return error;
}

int collx_agree_from_all(const struct collx_comm *comm, const void *own, void *all, size_t bytes)
{
    MPI_Request request;
    int error =
        pmpi.Iallgather(own, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, comm->comm, &request);

    return error ? error : finish(comm, &request);
}

int collx_agree_from_zero(const struct collx_comm *comm, void *data, size_t bytes)
{
    MPI_Request request;
    int error = pmpi.Ibcast(data, (int)bytes, MPI_BYTE, 0, comm->comm, &request);

    return error ? error : finish(comm, &request);
}

int collx_agree_any(const struct collx_comm *comm, uint64_t *words, int count)
{
    MPI_Request request;
    uint64_t all[COLLX_AGREE_WORDS];
    int error = pmpi.Iallreduce(words, all, count, MPI_UINT64_T, MPI_BOR, comm->comm, &request);

    error = error ? error : finish(comm, &request);
    memcpy(words, all, (size_t)count * sizeof *all);
    return error;
}
