/* A rank that waits in a collective has to keep MPI going: another may need the end of a message
 * that this rank began to send, before it can come. */
#include "conformance.h"

#include <string.h>
#include <unistd.h>

enum { MESSAGE = 8 << 20, TAG = 5 };

static char *message;

static void collective(MPI_Comm comm, int kind, int root)
{
    int in = cf_rank, out = -1;

    switch (kind) {
    case 0:
        cf_ok(MPI_Barrier(comm));
        break;
    case 1:
        out = cf_rank == root ? 4711 : -1;
        if (cf_ok(MPI_Bcast(&out, 1, MPI_INT, root, comm)) && out != 4711)
            cf_fail("%d, expected 4711", out);
        break;
    default:
        if (cf_ok(MPI_Allreduce(&in, &out, 1, MPI_INT, MPI_SUM, comm)) &&
            out != cf_size * (cf_size - 1) / 2)
            cf_fail("%d, expected %d", out, cf_size * (cf_size - 1) / 2);
    }
}

/* Rank `from` enters with a large message on its way to rank `to`, who receives it first. */
static void pending_send(MPI_Comm comm, int kind, int from, int to, int sleep_us)
{
    static const char *const names[] = {"MPI_Barrier", "MPI_Bcast", "MPI_Allreduce"};
    MPI_Request request;

    cf_case("%s while a message from rank %d to %d is pending", names[kind], from, to);
    memset(message, cf_rank == from ? 'x' : '-', MESSAGE);
    if (cf_rank == from)
        MPI_Isend(message, MESSAGE, MPI_BYTE, to, TAG, comm, &request);
    if (cf_rank == to) {
        usleep((useconds_t)sleep_us);
        MPI_Recv(message, MESSAGE, MPI_BYTE, from, TAG, comm, MPI_STATUS_IGNORE);
        if (message[0] != 'x' || message[MESSAGE - 1] != 'x')
            cf_fail("the message is wrong");
    }
    collective(comm, kind, to);
    if (cf_rank == from)
        MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* All ranks but one sit in the collective; that one needs a nonblocking collective first, which
 * only gets on if those who wait let it. */
static void pending_collective(MPI_Comm comm, MPI_Comm other, int kind, int late)
{
    static int in[50000], out[50000];
    MPI_Request request;

    cf_case("collective %d while rank %d waits for MPI_Iallreduce first", kind, late);
    for (int i = 0; i < 50000; i++)
        in[i] = i + cf_rank;
    MPI_Iallreduce(in, out, 50000, MPI_INT, MPI_SUM, other, &request);
    if (cf_rank == late)
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    collective(comm, kind, late);
    if (cf_rank != late)
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (out[49999] != 49999 * cf_size + cf_size * (cf_size - 1) / 2)
        cf_fail("MPI_Iallreduce gave %d", out[49999]);
}

void cf_test_progress(void)
{
    MPI_Comm comm = cf_world_dup(), other;

    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    message = cf_memory(MESSAGE);
    for (int kind = 0; kind < 3; kind++) {
        for (int late = 0; late < cf_size && late < 3; late++)
            pending_collective(comm, other, kind, late);
        if (cf_size == 1)
            continue;
        pending_send(comm, kind, 0, 1, 0);
        pending_send(comm, kind, cf_size - 1, 0, 0);
        pending_send(comm, kind, 0, cf_size - 1, 50000);
    }
    cf_memory_free(message, MESSAGE);
    MPI_Comm_free(&other);
    MPI_Comm_free(&comm);
}
