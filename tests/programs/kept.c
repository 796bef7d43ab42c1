/* Communicators that are made, used for some calls and freed: one program for each thing that
 * tests/run_kept.py tries.
 *
 * usage: kept CASE; the cases are at the end.
 */
#include "tests/programs/cases.h"
#include "tests/programs/check.h"

#include <mpi.h>

#include <stdbool.h>
#include <unistd.h>

static int rank, size;

/* What a setup of two ranks is worth, after COLLX_WARMUP_CALLS; and calls that are enough to have
 * what was set up for others. */
enum { SET_UP = 4096 + 44, ENOUGH = 300 };

/* So many calls of all kinds, in turn, with checked results, of all lengths up to one that takes
 * more than a turn of a segment's chunks.  The last one but two is a Bcast from rank 0, whose
 * others come late: nobody need wait for them then. */
static void use(MPI_Comm comm, int calls)
{
    enum { LONG = 100000 };
    static int data[LONG], sum[LONG];
    int me, ranks;

    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &ranks);
    for (int i = 0; i < calls; i++) {
        /* Nothing that would be worth a setup before its time. */
        const int many = calls - i <= 10 ? LONG : 60, count = 1 + i * 7919 % many;
        const bool last = i == calls - 1;
        const int root = last ? 0 : i % ranks;
        if (!last && i % 3 == 0) {
            CHECK(MPI_Barrier(comm) == MPI_SUCCESS);
        } else if (last || i % 3 == 1) {
            if (last && me != root)
                usleep(1000);
            for (int k = 0; k < count; k++)
                data[k] = me == root ? k + i : -1;
            CHECK(MPI_Bcast(data, count, MPI_INT, root, comm) == MPI_SUCCESS);
            for (int k = 0; k < count; k++)
                CHECK(data[k] == k + i);
        } else {
            for (int k = 0; k < count; k++)
                data[k] = me + k + i;
            CHECK(MPI_Allreduce(data, sum, count, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS);
            for (int k = 0; k < count; k++)
                CHECK(sum[k] == ranks * (ranks - 1) / 2 + ranks * (k + i));
        }
    }
}

static MPI_Comm made(const char *name)
{
    MPI_Comm comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_name(comm, name);
    return comm;
}

static void life(const char *name, int calls)
{
    MPI_Comm comm = made(name);

    use(comm, calls);
    MPI_Comm_free(&comm);
}

/* One is set up, and those that follow it have what it had; but not those that are too short. */
static void again(void)
{
    life("again", SET_UP);
    for (int i = 0; i < 3; i++)
        life("again", ENOUGH);
    life("brief", 15);
    life("again", ENOUGH);
}

/* None is long enough by itself, all of them are. */
static void together(void)
{
    for (int i = 0; i < 6; i++)
        life("together", 1000);
}

/* Of these all ranks know that little has passed. */
static void barriers(void)
{
    for (int i = 0; i < 4; i++) {
        MPI_Comm comm = made("barriers");
        for (int k = 0; k < (i ? ENOUGH : SET_UP); k++)
            CHECK(MPI_Barrier(comm) == MPI_SUCCESS);
        MPI_Comm_free(&comm);
    }
}

/* Two at a time: one has it, and the other one has not. */
static void both(void)
{
    MPI_Comm one, other;

    life("both", SET_UP);
    one = made("both");
    other = made("both");
    use(one, ENOUGH);
    use(other, ENOUGH);
    MPI_Comm_free(&one);
    use(other, ENOUGH);
    MPI_Comm_free(&other);
}

/* Rank 0 of one is not rank 0 of others, which it knows as well. */
static void turned_between(void)
{
    MPI_Comm turned;

    life("turned", SET_UP);
    for (int i = 0; i < 6; i++) {
        MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &turned);
        MPI_Comm_set_name(turned, "between");
        use(turned, i ? ENOUGH : SET_UP);
        MPI_Comm_free(&turned);
    }
    life("turned", ENOUGH);
}

static void other_name(void)
{
    life("one", SET_UP);
    life("other", ENOUGH);
}

static void other_order(void)
{
    MPI_Comm turned;

    life("order", SET_UP);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &turned);
    MPI_Comm_set_name(turned, "order");
    use(turned, ENOUGH);
    MPI_Comm_free(&turned);
}

/* The names differ between ranks, or have been changed. */
static void names_differ(void)
{
    char name[] = {(char)('a' + rank), '\0'};

    for (int i = 0; i < 4; i++)
        life(name, 100);
    for (int i = 0; i < 4; i++) {
        MPI_Comm comm = made(name);
        use(comm, 100);
        MPI_Comm_set_name(comm, "meanwhile");
        MPI_Comm_free(&comm);
    }
}

/* Names as Open MPI 5 gives to what a program has given none: with numbers that each process counts
 * for itself. */
static void made_up_names(void)
{
    char name[MPI_MAX_OBJECT_NAME];

    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof name,
                 i % 2 ? "MPI COMM %d SPLIT FROM 0" : "MPI COMMUNICATOR %d DUP FROM 0",
                 3 + i + rank);
        life(name, 100);
    }
}

/* Some ranks have made more since than they can keep, others have not. */
static void lost(void)
{
    enum { MANY = 6 };
    MPI_Comm first, others, comm[MANY];

    CHECK(size == 3);
    for (int turn = 0; turn < 3; turn++) {
        MPI_Comm_split(MPI_COMM_WORLD, rank < 2 ? 0 : MPI_UNDEFINED, rank, &first);
        if (rank < 2) {
            use(first, 100);
            MPI_Comm_free(&first);
        }
        MPI_Comm_split(MPI_COMM_WORLD, rank > 0 ? 0 : MPI_UNDEFINED, rank, &others);
        if (rank == 0)
            continue;
        for (int i = 0; i < MANY; i++) {
            MPI_Comm_dup(others, &comm[i]);
            use(comm[i], 50);
        }
        for (int i = 0; i < MANY; i++)
            MPI_Comm_free(&comm[i]);
        MPI_Comm_free(&others);
    }
}

/* A rank still has the one before it when the others have freed it. */
static void still_in_use(void)
{
    MPI_Comm before = made("still"), comm;

    for (int i = 0; i < 4; i++) {
        use(before, 100);
        comm = made("still");
        if (rank == 0)
            MPI_Comm_free(&before);
        use(comm, 100);
        if (rank != 0)
            MPI_Comm_free(&before);
        before = comm;
    }
    MPI_Comm_free(&before);
}

/* The root of a Bcast does not see that nobody else calls it; it is over when the communicator is.
 */
static void one_too_many(void)
{
    int data[] = {7};

    for (int i = 0; i < 4; i++) {
        MPI_Comm comm = made("uneven");
        use(comm, 20);
        if (rank == 0 && i == 1)
            MPI_Bcast(data, 1, MPI_INT, 0, comm);
        MPI_Comm_free(&comm);
    }
}

/* Two kinds by turns leave room for each other. */
static void by_turns(void)
{
    for (int i = 0; i < 20; i++)
        life(i % 2 ? "one" : "other", 20);
}

/* A rank is late for what it takes over, when another has used it, freed it, and let go of it, for
 * others that came since. */
static void last_to_come(void)
{
    enum { OTHERS = 4 };
    MPI_Comm pair, other[OTHERS], with;

    CHECK(size == 3);
    /* That there are more ranks than CPUs they may all know from now on alone, and wait otherwise.
     */
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Comm_split(MPI_COMM_WORLD, rank < 2 ? 0 : MPI_UNDEFINED, rank, &pair);
    if (rank < 2) {
        use(pair, 20);
        MPI_Comm_free(&pair);
    }
    MPI_Comm_split(MPI_COMM_WORLD, rank == 1 ? MPI_UNDEFINED : 0, rank, &with);
    for (int i = 0; i < OTHERS && rank != 1; i++) {
        MPI_Comm_dup(with, &other[i]);
        use(other[i], 20);
    }
    MPI_Comm_split(MPI_COMM_WORLD, rank < 2 ? 0 : MPI_UNDEFINED, rank, &pair);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank < 2) {
        /* late_to_return.c holds rank 1 up here, once. */
        setenv("LATE_TO_RETURN", rank == 1 ? "1" : "", 1);
        for (int i = 0; i < 3; i++) {
            int data = rank == 0 ? i : -1;
            CHECK(MPI_Bcast(&data, 1, MPI_INT, 0, pair) == MPI_SUCCESS && data == i);
        }
        MPI_Comm_free(&pair);
    }
    for (int i = 0; i < OTHERS && rank != 1; i++)
        MPI_Comm_free(&other[i]);
    if (rank != 1)
        MPI_Comm_free(&with);
}

/* What is taken over is as long as all before it together. */
static void often(void)
{
    for (int i = 0; i < 60; i++)
        life("often", 20);
}

enum { ELEMENT = 1500 };

static void add_elements(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *count * ELEMENT; i++)
        ((int *)inout)[i] += ((int *)in)[i];
}

/* Elements too large for shared memory go by messages, also of ranks that have them from others. */
static void large_elements(void)
{
    static int data[ELEMENT], sum[ELEMENT];
    MPI_Datatype type;
    MPI_Op add;

    MPI_Type_contiguous(ELEMENT, MPI_INT, &type);
    MPI_Type_commit(&type);
    MPI_Op_create(add_elements, 0, &add);
    for (int i = 0; i < 20; i++) {
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Comm_set_name(comm, "large");
        for (int call = 0; call < 3; call++) {
            for (int k = 0; k < ELEMENT; k++)
                data[k] = rank + k + i + call;
            CHECK(MPI_Allreduce(data, sum, 1, type, add, comm) == MPI_SUCCESS);
            for (int k = 0; k < ELEMENT; k++)
                CHECK(sum[k] == size * (size - 1) / 2 + size * (k + i + call));
        }
        MPI_Comm_free(&comm);
        life("often", 20);
    }
    MPI_Op_free(&add);
    MPI_Type_free(&type);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {{"again", again},
                                             {"together", together},
                                             {"barriers", barriers},
                                             {"both", both},
                                             {"turned-between", turned_between},
                                             {"other-name", other_name},
                                             {"other-order", other_order},
                                             {"names-differ", names_differ},
                                             {"made-up-names", made_up_names},
                                             {"lost", lost},
                                             {"still-in-use", still_in_use},
                                             {"one-too-many", one_too_many},
                                             {"by-turns", by_turns},
                                             {"last-to-come", last_to_come},
                                             {"often", often},
                                             {"large-elements", large_elements}};
    int provided, wanted = getenv("THREADS") ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;

    if (argc != 2)
        return 2;
    MPI_Init_thread(NULL, NULL, wanted, &provided);
    CHECK(provided >= wanted);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    RUN_CASE(cases, argv[1]);
    if (rank == 0)
        printf("good\n");
    MPI_Finalize();
    return 0;
}
