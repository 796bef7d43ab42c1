/* Ranks that do not call the same: usage: differ lengths|kinds|operations|elements|roots
 *
 * It is on a communicator of its own, of which MPI libraries return errors, and takes no harm from
 * whatever they make of it.  Prints "good" at its end. */
#include "check.h"

#include <mpi.h>
#include <string.h>

enum { SHORT = 100, LONG = 20000 };

static int rank, size;
static char bytes[LONG];
static MPI_Comm comm;

/* The root's message is shorter than what others want. */
static void lengths(void)
{
    MPI_Bcast(bytes, rank ? LONG : SHORT, MPI_BYTE, 0, comm);
}

/* Rank 0 calls the same two the other way round; the one has nothing to do. */
static void kinds(void)
{
    if (rank == 0)
        MPI_Barrier(comm);
    MPI_Bcast(bytes, 0, MPI_BYTE, 0, comm);
    if (rank != 0)
        MPI_Barrier(comm);
}

static void operations(void)
{
    int in = 1, out = 0;

    MPI_Allreduce(&in, &out, 1, MPI_INT, rank ? MPI_MAX : MPI_SUM, comm);
}

static void elements(void)
{
    int in = 0, out = 0;

    MPI_Allreduce(&in, &out, 1, rank ? MPI_FLOAT : MPI_INT, MPI_SUM, comm);
}

static void roots(void)
{
    MPI_Bcast(bytes, 0, MPI_BYTE, rank ? 1 : 0, comm);
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {{"lengths", lengths},
             {"kinds", kinds},
             {"operations", operations},
             {"elements", elements},
             {"roots", roots}};

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_name(comm, "differing");
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);

    for (int call = 0; call < 10; call++)
        MPI_Barrier(comm);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (argc > 1 && !strcmp(argv[1], cases[i].name))
            cases[i].run();
    /* Another one has nothing to do with it. */
    int sum = 0;
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == size * (size - 1) / 2);
    MPI_Comm_free(&comm);
    if (rank == 0)
        puts("good");
    MPI_Finalize();
    return 0;
}
