/* Calls whose way is looked up in the trace afterwards: run.py counts them by communicator. */
#include "conformance.h"

#include <string.h>

void cf_test_routes(void)
{
    static const int counts[] = {1, 2, 8, 100, 1000, 10000, 100000, 1000000};
    static char data[1000000], result[1000000];
    MPI_Comm comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_name(comm, "conformance");
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    cf_warm_up(comm);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        cf_case("all three, %d bytes", counts[i]);
        memset(data, cf_rank == 0 ? 3 : 1, sizeof data);
        cf_ok(MPI_Barrier(comm));
        cf_ok(MPI_Allreduce(data, result, counts[i], MPI_INT8_T, MPI_SUM, comm));
        if (result[counts[i] - 1] != cf_size + 2)
            cf_fail("MPI_Allreduce gave %d", result[counts[i] - 1]);
        cf_ok(MPI_Bcast(data, counts[i], MPI_BYTE, 0, comm));
        if (data[counts[i] - 1] != 3)
            cf_fail("MPI_Bcast gave %d", data[counts[i] - 1]);
    }
    MPI_Comm_free(&comm);
}
