/* Calls the functions for large counts as programs do that look for them and find them, without
 * knowing whether the MPI library has them: one program for each thing that tests/run_large.py
 * tries.
 *
 * usage: large CASE; the cases are at the end.
 */
#include "base/collectives.h"
#include "pmpi/signatures.h"
#include "tests/programs/cases.h"
#include "tests/programs/check.h"
#include "tests/programs/past.h"

#include <mpi.h>

#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if MPI_VERSION >= 4 || (defined OMPI_MAJOR_VERSION && OMPI_MAJOR_VERSION >= 5)
enum { FORMS = COLLX_FORMS };
#else
enum { FORMS = COLLX_PERSISTENT };
#endif

/* In MPICH 4.0 those with int counts mistake a rank's indegree for its outdegree. */
#if defined MPICH_NUMVERSION && MPICH_NUMVERSION >= 40000000 && MPICH_NUMVERSION < 40100000
enum { WRONG_DEGREES = true };
#else
enum { WRONG_DEGREES = false };
#endif

/* In Open MPI 4.1.2 an MPI_Alltoallv in place does not end. */
#if defined OPEN_MPI && OMPI_MAJOR_VERSION == 4 && OMPI_MINOR_VERSION == 1 &&                      \
    OMPI_RELEASE_VERSION < 4
enum { NO_END_IN_PLACE = true };
#else
enum { NO_END_IN_PLACE = false };
#endif

enum { MOST = 8, ROOM = 4 };

static int rank, size;
static int calls[COLLX_KINDS][COLLX_FORMS];

/* A rank's place among others, and what it is in a collective of theirs. */
struct place {
    MPI_Comm comm;
    int rank;
    int root; /* as it is said here */
    bool is_root, is_peer, in_place;
    /* its neighbours */
    int in, out;
    int from[MOST], to[MOST];
};

/* How many elements rank `from` has for rank `to`, or for all; less than ROOM. */
static int amount(int from, int to)
{
    return 1 + (from + 2 * to) % (ROOM - 1);
}

/* While `turn` counts, each time by another of the calls that can see the end. */
static unsigned turn;
static void complete(MPI_Request *request)
{
    MPI_Request two[2] = {MPI_REQUEST_NULL, *request};
    MPI_Status statuses[2];
    int done = 0, which[2], number;

    if (turn)
        turn++;
    switch (turn % 8) {
    case 0:
        MPI_Wait(&two[1], MPI_STATUS_IGNORE);
        break;
    case 1:
        MPI_Waitall(2, two, statuses);
        break;
    case 2:
        MPI_Waitany(2, two, &number, MPI_STATUS_IGNORE);
        break;
    case 3:
        MPI_Waitsome(2, two, &number, which, statuses);
        break;
    case 4:
        while (!done)
            MPI_Test(&two[1], &done, MPI_STATUS_IGNORE);
        break;
    case 5:
        while (!done)
            MPI_Testall(2, two, &done, statuses);
        break;
    case 6:
        while (!done)
            MPI_Testany(2, two, &number, &done, MPI_STATUS_IGNORE);
        break;
    default:
        do {
            MPI_Testsome(2, two, &number, which, statuses);
        } while (number == 0);
    }
}

#define N int
#define D int
#define MINE(name) int_##name
#define SUFFIX ""
#include "tests/programs/large_forms.h"
#undef N
#undef D
#undef MINE
#undef SUFFIX
#define N MPI_Count
#define D MPI_Aint
#define MINE(name) large_##name
#define SUFFIX "_c"
#include "tests/programs/large_forms.h"

static void compare(enum collx_kind kind, enum collx_form form, const struct place *p)
{
    int send[MOST * ROOM], here[2][MOST * ROOM], error[2];

    for (int i = 0; i < MOST * ROOM; i++)
        send[i] = here[0][i] = here[1][i] = 1000 * (rank + 1) + i;
    error[0] = int_call(kind, form, p, send, here[0]);
    error[1] = large_call(kind, form, p, send, here[1]);
    if (error[0] || error[1] || memcmp(here[0], here[1], sizeof here[0]) != 0) {
        fprintf(stderr, "%s on rank %d, root %d, %s: errors %d and %d, or other results\n",
                collx_mpi_name(kind, form), p->rank, p->root,
                p->in_place ? "in place" : "not in place", error[0], error[1]);
        exit(1);
    }
}

static void compare_all(const struct place *p, enum collx_kind from, enum collx_kind to)
{
    for (int kind = from; kind <= (int)to; kind++)
        for (int form = 0; form < FORMS; form++)
            compare((enum collx_kind)kind, (enum collx_form)form, p);
}

static bool has_root(int kind)
{
    return kind == COLLX_BCAST || kind == COLLX_REDUCE || kind == COLLX_GATHER ||
           kind == COLLX_GATHERV || kind == COLLX_SCATTER || kind == COLLX_SCATTERV;
}

static void within(void)
{
    for (int in_place = 0; in_place < 2; in_place++) {
        struct place p = {.comm = MPI_COMM_WORLD, .rank = rank, .in_place = in_place};
        for (int kind = COLLX_BCAST; kind < COLLX_NEIGHBOR_ALLGATHER; kind++) {
            if (NO_END_IN_PLACE && in_place && (kind == COLLX_ALLTOALLV || kind == COLLX_ALLTOALLW))
                continue;
            for (p.root = 0; p.root < (has_root(kind) ? size : 1); p.root++) {
                p.is_root = p.root == rank;
                p.is_peer = true;
                compare_all(&p, (enum collx_kind)kind, (enum collx_kind)kind);
            }
        }
    }
}

/* Between the even and the odd ranks.  In Open MPI 4.1 the nonblocking ones do not end on a rank
 * that says MPI_PROC_NULL. */
static void between(void)
{
    struct place p = {.is_peer = true};
    MPI_Comm half;

    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 1, &p.comm);
    MPI_Comm_rank(p.comm, &p.rank);
    for (int kind = COLLX_BCAST; kind < COLLX_NEIGHBOR_ALLGATHER; kind++) {
        if (kind == COLLX_SCAN || kind == COLLX_EXSCAN)
            continue;
        for (int side = 0; side < (has_root(kind) ? 2 : 1); side++) {
            const bool roots = rank % 2 == side;
            p.is_root = has_root(kind) && roots && p.rank == 0;
            p.is_peer = !has_root(kind) || !roots;
            p.root = !roots ? 0 : p.is_root ? MPI_ROOT : MPI_PROC_NULL;
            compare((enum collx_kind)kind, COLLX_BLOCKING, &p);
        }
    }
    MPI_Comm_free(&p.comm);
    MPI_Comm_free(&half);
}

static void among_neighbours(void)
{
    const int before = (rank + size - 1) % size, after = (rank + 1) % size, round = 1;
    struct place p = {.rank = rank, .is_peer = true, .in = 2, .out = 2};

    p.from[0] = p.to[0] = before;
    p.from[1] = p.to[1] = after;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &round, 0, &p.comm);
    compare_all(&p, COLLX_NEIGHBOR_ALLGATHER, COLLX_NEIGHBOR_ALLTOALLW);
    MPI_Comm_free(&p.comm);

    int ends[MOST], edges[2 * MOST], weights[MOST] = {0};
    for (int i = 0; i < size; i++) {
        ends[i] = 2 * (i + 1);
        edges[2 * i] = (i + size - 1) % size;
        edges[2 * i + 1] = (i + 1) % size;
    }
    MPI_Graph_create(MPI_COMM_WORLD, size, ends, edges, 0, &p.comm);
    compare_all(&p, COLLX_NEIGHBOR_ALLGATHER, COLLX_NEIGHBOR_ALLTOALLW);
    MPI_Comm_free(&p.comm);

    if (WRONG_DEGREES)
        return;
    /* In a ring, and from rank 0 to all others, but for the next one, which has it from there. */
    p.in = p.out = 1;
    p.from[0] = before;
    p.to[0] = after;
    if (rank == 0)
        for (int i = 2; i < size; i++)
            p.to[p.out++] = i;
    else if (rank > 1)
        p.from[p.in++] = 0;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, p.in, p.from, weights, p.out, p.to, weights,
                                   MPI_INFO_NULL, 0, &p.comm);
    compare_all(&p, COLLX_NEIGHBOR_ALLGATHER, COLLX_NEIGHBOR_ALLTOALLW);
    MPI_Comm_free(&p.comm);
}

/* What every function of this sort gives is what its twin gives.  Says how often each was called.
 */
static void same(void)
{
    within();
    between();
    among_neighbours();
    for (int kind = COLLX_BCAST; rank == 0 && kind < COLLX_KINDS; kind++)
        for (int form = 0; form < FORMS; form++)
            printf("%s %d\n", collx_mpi_name((unsigned)kind, (unsigned)form), calls[kind][form]);
}

/* More elements than an int can count, of a type that has no bytes. */
static void too_large(void)
{
    const MPI_Count many = 1LL << 31;
    MPI_Count counts[MOST] = {0};
    MPI_Aint at[MOST] = {0};
    MPI_Request request;
    MPI_Datatype none;
    char byte = 0;
    int classes[4];

    if (library_has("PMPI_Bcast_c"))
        return; /* takes some of them, and hangs in others */
    MPI_Type_contiguous(0, MPI_INT, &none);
    MPI_Type_commit(&none);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    classes[0] = large_MPI.Gather(&byte, many, none, &byte, many, none, 0, MPI_COMM_WORLD);
    classes[1] =
        large_MPI.Iallgather(&byte, many, none, &byte, many, none, MPI_COMM_WORLD, &request);
    if (!classes[1])
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    at[size - 1] = many;
    classes[2] = large_MPI.Allgatherv(&byte, 0, none, &byte, counts, at, none, MPI_COMM_WORLD);
    at[size - 1] = 0;
    counts[size - 1] = many;
    classes[3] = large_MPI.Iallgatherv(&byte, rank == size - 1 ? many : 0, none, &byte, counts, at,
                                       none, MPI_COMM_WORLD, &request);
    if (!classes[3])
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; rank == 0 && i < 4; i++) {
        int class;
        MPI_Error_class(classes[i], &class);
        printf("%s\n", class == MPI_SUCCESS     ? "taken"
                       : class == MPI_ERR_COUNT ? "refused"
                                                : "failed");
    }
}

/* How many bytes are left of what is done `times` times, in the best of several goes: MPI libraries
 * keep some memory for later now and then. */
static size_t left(void (*once)(bool large), bool large, int times)
{
    size_t least = SIZE_MAX;

    for (int go = 0; go < 5; go++) {
        const size_t before = mallinfo2().uordblks;
        for (int time = 0; time < times; time++)
            once(large);
        const size_t now = mallinfo2().uordblks, more = now > before ? now - before : 0;
        least = more < least ? more : least;
    }
    return least;
}

/* No more than of their twins, of which some MPI libraries leave something. */
static void nothing_left(void (*once)(bool large), int times)
{
    if (library_has("PMPI_Bcast_c"))
        return;
    const size_t of_twins = left(once, false, times), of_large = left(once, true, times);
    if (of_large > of_twins + 2 * (size_t)times)
        fprintf(stderr, "rank %d: %zu bytes are left of %d times, %zu of their twins\n", rank,
                of_large, times, of_twins);
    CHECK(of_large <= of_twins + 2 * (size_t)times);
}

static void one_call(bool large)
{
    const struct place p = {.comm = MPI_COMM_WORLD, .rank = rank, .is_peer = true};
    const enum collx_form form = (enum collx_form)(turn / 8 % FORMS);
    int send[MOST * ROOM] = {0}, receive[MOST * ROOM];

    (large ? large_call : int_call)(COLLX_ALLTOALLV, form, &p, send, receive);
    if (form != COLLX_NONBLOCKING)
        turn++;
}

static void given_back(void)
{
    turn = 1;
    nothing_left(one_call, 2000);
}

/* One after the other, as soon as each is under way, and all waited for at the end. */
static void under_way(void)
{
    enum { WAYS = 50 };
    static int send[MOST * ROOM], receive[WAYS][MOST * ROOM];
    static struct large_arrays arrays[WAYS];
    const struct place p = {.comm = MPI_COMM_WORLD, .rank = rank, .is_peer = true};
    MPI_Request requests[WAYS];
    MPI_Status statuses[WAYS];

    for (int i = 0; i < MOST * ROOM; i++)
        send[i] = 100 * rank + i / ROOM;
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < WAYS; i++) {
            large_fill(&arrays[i], &p);
            CHECK(!large_MPI.Ialltoallv(send, arrays[i].sent, arrays[i].sent_at, MPI_INT,
                                        receive[i], arrays[i].received, arrays[i].received_at,
                                        MPI_INT, MPI_COMM_WORLD, &requests[i]));
        }
        MPI_Waitall(WAYS, requests, statuses);
        for (int i = 0; i < WAYS; i++)
            for (int from = 0; from < size; from++)
                for (int k = 0; k < arrays[i].received[from]; k++)
                    CHECK(receive[i][ROOM * from + k] == 100 * from + rank);
    }
}

/* Made, used once each, and freed in another order than made. */
static void make_and_free(bool large)
{
    enum { WAYS = 50 };
    static int send[MOST * ROOM], receive[WAYS][MOST * ROOM];
    static struct large_arrays arrays[WAYS];
    static struct int_arrays ints;
    const struct place p = {.comm = MPI_COMM_WORLD, .rank = rank, .is_peer = true};
    MPI_Request requests[WAYS];

    int_fill(&ints, &p);
    for (int i = 0; i < WAYS; i++) {
        large_fill(&arrays[i], &p);
        CHECK(!(large ? large_MPI.Alltoallv_init(send, arrays[i].sent, arrays[i].sent_at, MPI_INT,
                                                 receive[i], arrays[i].received,
                                                 arrays[i].received_at, MPI_INT, MPI_COMM_WORLD,
                                                 MPI_INFO_NULL, &requests[i])
                      : int_MPI.Alltoallv_init(send, ints.sent, ints.sent_at, MPI_INT, receive[i],
                                               ints.received, ints.received_at, MPI_INT,
                                               MPI_COMM_WORLD, MPI_INFO_NULL, &requests[i])));
    }
    for (int i = 0; i < WAYS; i++) {
        MPI_Start(&requests[i]);
        MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < WAYS; i++)
        MPI_Request_free(&requests[(7 * i + 3) % WAYS]);
}

static void persistent(void)
{
    nothing_left(make_and_free, 50);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {{"same", same},
                                             {"too-large", too_large},
                                             {"given-back", given_back},
                                             {"under-way", under_way},
                                             {"persistent", persistent}};

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(argc == 2 && size >= 2 && size <= MOST);
    int_find();
    large_find();
    /* As it is in code that is not position-independent: a piece of the program, which jumps on. */
    CHECK(dlsym(RTLD_DEFAULT, "MPI_Gather") == (void *)MPI_Gather);
    if (rank == 0 && !library_has("PMPI_Bcast_c"))
        puts("the library has no large counts");
    RUN_CASE(cases, argv[1]);
    MPI_Finalize();
    if (rank == 0)
        puts("good");
    return 0;
}
