/* Ranks that do not call the same: usage: differ CASE, one of cases[]
 *
 * It is on a communicator of its own, of which MPI libraries return errors, and takes no harm from
 * whatever they make of it.  Prints "good" at its end. */
#include "tests/programs/cases.h"
#include "tests/programs/check.h"

#include <mpi.h>

#include <dlfcn.h>
#include <unistd.h>

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

/* Rank 1 is the last to come, or rank 0, which is the one that compares. */
static void late(void)
{
    if (rank == 1)
        sleep(1);
    MPI_Barrier(comm);
}

/* On two communicators at once, and each again: all are told of, and each once. */
static void two_late(void)
{
    MPI_Comm half;
    int me;

    MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &half);
    MPI_Comm_set_name(half, rank / 2 ? "second" : "first");
    MPI_Comm_rank(half, &me);
    MPI_Barrier(half);
    for (int i = 0; i < 3; i++) {
        if (me == 1)
            usleep(700000);
        MPI_Barrier(half);
    }
    MPI_Comm_free(&half);
}

static void zero_late(void)
{
    if (rank == 0)
        sleep(2);
    MPI_Barrier(comm);
}

/* One block of memory that rank 1 does not get, each in its turn, of those that take it to set up a
 * communicator whose calls are compared. */
static void no_memory(void)
{
    int *after = dlsym(RTLD_DEFAULT, "no_memory_after"), left = 1, sum;
    MPI_Comm each;

    CHECK(after);
    for (int i = 0; left; i++) {
        CHECK(i < 100);
        MPI_Comm_dup(comm, &each);
        *after = rank == 1 ? i : -1;
        for (int call = 0; call < 3; call++) {
            MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, each);
            CHECK(sum == size * (size - 1) / 2);
        }
        left = rank == 1 && *after < 0;
        *after = -1;
        MPI_Allreduce(MPI_IN_PLACE, &left, 1, MPI_INT, MPI_MAX, comm);
        MPI_Comm_free(&each);
    }
}

static void add(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *count; i++)
        ((int *)inout)[i] += ((int *)in)[i];
}

/* Not different: MPI takes these for the same type. */
static void equivalent(void)
{
    MPI_Datatype copy;
    MPI_Op op;
    int in = 1, out = 0;

    MPI_Type_dup(MPI_INT, &copy);
    MPI_Op_create(add, 1, &op);
    MPI_Allreduce(&in, &out, 1, rank ? copy : MPI_INT, op, comm);
    CHECK(out == size);
    MPI_Op_free(&op);
    MPI_Type_free(&copy);
}

static const struct test_case cases[] = {{"lengths", lengths},       {"kinds", kinds},
                                         {"operations", operations}, {"elements", elements},
                                         {"roots", roots},           {"late", late},
                                         {"zero-late", zero_late},   {"two-late", two_late},
                                         {"no-memory", no_memory},   {"equivalent", equivalent}};

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
    CHECK(argc == 2);
    RUN_CASE(cases, argv[1]);
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
