/* Programs that meet bad weather: one for each thing that the tests of tests/weather.py try.
 *
 * usage: weather CASE; the cases are at the end, and in weather_*.c.
 */
#include "tests/programs/weather.h"

#include "tests/programs/past.h"
#include "tests/programs/set_up.h"

#include <errno.h>
#include <fcntl.h>
#include <fenv.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

int rank, size;

void one_round(MPI_Comm comm, int i)
{
    int me, ranks, value, sum = -1;

    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &ranks);
    CHECK(MPI_Barrier(comm) == MPI_SUCCESS);
    value = me == i % ranks ? 3 * i : -1;
    CHECK(MPI_Bcast(&value, 1, MPI_INT, i % ranks, comm) == MPI_SUCCESS);
    CHECK(value == 3 * i);
    value = me + i;
    CHECK(MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS);
    CHECK(sum == ranks * (ranks - 1) / 2 + ranks * i);
}

void rounds(MPI_Comm comm, int count)
{
    if (count > 1)
        use_until_set_up(comm);
    for (int i = 0; i < count; i++)
        one_round(comm, i);
}

MPI_Comm comm_with_handler(MPI_Comm_errhandler_function *handler)
{
    MPI_Errhandler made;
    MPI_Comm comm;

    MPI_Comm_create_errhandler(handler, &made);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, made);
    MPI_Errhandler_free(&made);
    return comm;
}

int errors_told, last_class;

void count_error(MPI_Comm *comm, int *error, ...)
{
    (void)comm;
    errors_told++;
    MPI_Error_class(*error, &last_class);
}

__attribute__((noinline)) void use_stack(void)
{
    volatile char other[16384];

    memset((void *)other, 0x5a, sizeof other);
}

void start(void)
{
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
}

void good(void)
{
    if (rank == 0)
        printf("good\n");
    fflush(stdout);
}

void finish(void)
{
    good();
    MPI_Finalize();
}

static void no_calls(void)
{
    start();
    finish();
}

static void plain(void)
{
    start();
    rounds(MPI_COMM_WORLD, 50);
    finish();
}

/* One rank makes its calls past collx, as nobody should: who had anything to agree on would wait
 * for it. */
static void one_past(void)
{
    int (*barrier)(MPI_Comm) = MPI_Barrier;
    MPI_Comm copy;

    start();
    if (rank == 0)
        barrier = (int (*)(MPI_Comm))past_collx("MPI_Barrier");
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    for (int i = 0; i < 100; i++) {
        CHECK(barrier(MPI_COMM_WORLD) == MPI_SUCCESS);
        CHECK(barrier(copy) == MPI_SUCCESS);
    }
    MPI_Comm_free(&copy);
    finish();
}

static void many(void)
{
    start();
    rounds(MPI_COMM_WORLD, 2000);
    finish();
}

/* Most ranks meet without rank 0 before anybody meets it. */
static void apart(void)
{
    MPI_Comm part;

    start();
    MPI_Comm_split(MPI_COMM_WORLD, rank == 0, rank, &part);
    rounds(part, 50);
    MPI_Comm_free(&part);
    rounds(MPI_COMM_WORLD, 50);
    finish();
}

/* What collx says of a rank that is late goes to a pipe whose reader has ended. */
static void nobody_reads(void)
{
    int pipe_end[2], keep = dup(STDERR_FILENO);

    start();
    CHECK(!pipe(pipe_end) && !close(pipe_end[0]) && dup2(pipe_end[1], STDERR_FILENO) >= 0);
    rounds(MPI_COMM_WORLD, 10);
    if (rank == 0)
        sleep(1);
    MPI_Barrier(MPI_COMM_WORLD);
    /* What the program does itself is its own, as ever. */
    sigset_t pending;
    CHECK(!sigpending(&pending) && !sigismember(&pending, SIGPIPE));
    CHECK(dup2(keep, STDERR_FILENO) >= 0);
    finish();
}

static void nothing(int number)
{
    (void)number;
}

/* Lets a pipe stay full for as long as somebody is to write to it; whether collx then did. */
static void *read_late(void *pipe_end)
{
    char text[1 << 12];
    ssize_t length;
    bool said = false;

    sleep(2);
    while ((length = read(*(int *)pipe_end, text, sizeof text)) > 0)
        said |= memmem(text, (size_t)length, "collx: ", 7) != NULL;
    return (void *)said;
}

/* What collx says of a rank that is late waits for the reader of its pipe, though signals, after
 * which calls of the kernel are not taken up again, come in between. */
static void read_slowly(void)
{
    const struct itimerval often = {{0, 10000}, {0, 10000}}, never = {{0, 0}, {0, 0}};
    const struct sigaction interrupting = {.sa_handler = nothing};
    int pipe_end[2], keep = dup(STDERR_FILENO);
    double from;
    sigset_t alarms;
    pthread_t reader;
    void *said;

    start();
    rounds(MPI_COMM_WORLD, 10);
    CHECK(!pipe(pipe_end) && fcntl(pipe_end[1], F_SETFL, O_NONBLOCK) == 0);
    while (write(pipe_end[1], "", 1) == 1)
        ;
    CHECK(fcntl(pipe_end[1], F_SETFL, 0) == 0 && dup2(pipe_end[1], STDERR_FILENO) >= 0);
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarms, NULL);
    CHECK(pthread_create(&reader, NULL, read_late, pipe_end) == 0);
    sigaction(SIGALRM, &interrupting, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    pthread_sigmask(SIG_UNBLOCK, &alarms, NULL);
    for (from = MPI_Wtime(); rank == 0 && MPI_Wtime() - from < 1;)
        ;
    MPI_Barrier(MPI_COMM_WORLD);
    setitimer(ITIMER_REAL, &never, NULL);
    CHECK(dup2(keep, STDERR_FILENO) >= 0 && close(pipe_end[1]) == 0);
    CHECK(pthread_join(reader, &said) == 0);
    CHECK(rank != 1 || said);
    finish();
}

/* A rank is late on a communicator where it has another number, and on the next one of its kind. */
static void late_elsewhere(void)
{
    MPI_Comm part;

    start();
    for (int i = 0; i < 2; i++) {
        MPI_Comm_split(MPI_COMM_WORLD, rank == 0, -rank, &part);
        if (rank != 0)
            MPI_Comm_set_name(part, "part");
        rounds(part, 10);
        if (rank == 1)
            sleep(1);
        MPI_Barrier(part);
        MPI_Comm_free(&part);
    }
    finish();
}

/* A program may trap what is not exact; what it calls here has no numbers in it.  rank 0 is late
 * once, and that is spoken of. */
static void inexact(void)
{
    static char much[256 << 10];

    start();
    feclearexcept(FE_ALL_EXCEPT);
    for (int i = 0; i < 100; i++) {
        if (rank == 0 && i == 80)
            sleep(1);
        MPI_Bcast(much, sizeof much, MPI_BYTE, i == 80 ? 0 : i % size, MPI_COMM_WORLD);
        CHECK(!fetestexcept(FE_ALL_EXCEPT));
    }
    finish();
}

/* One rank is always the last in Allreduce, so it never waits there; still the message that it has
 * begun to send must get through, for MPI_Test on the other side has to succeed in the end. */
static void never_waits(void)
{
    enum { BYTES = 8 << 20 };
    char *data = calloc(BYTES, 1);
    MPI_Request request;
    int done = 0, all = 0;

    CHECK(data);
    start();
    rounds(MPI_COMM_WORLD, 10);
    if (rank == 0)
        MPI_Isend(data, BYTES, MPI_CHAR, 1, 7, MPI_COMM_WORLD, &request);
    else if (rank == 1)
        MPI_Irecv(data, BYTES, MPI_CHAR, 0, 7, MPI_COMM_WORLD, &request);
    while (!all) {
        if (rank == 1 && !done)
            MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        if (rank == 0)
            usleep(100);
        int mine = rank == 1 ? done : 1;
        MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    }
    if (rank == 0)
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    free(data);
    finish();
}

/* Beside the root, in its group of an intercommunicator, nothing but the root means anything. */
static void beside_the_root(void)
{
#ifdef OPEN_MPI
    const MPI_Datatype nothing = MPI_CHAR; /* it looks at the type all the same */
#else
    const MPI_Datatype nothing = MPI_DATATYPE_NULL;
#endif
    enum { BYTES = 300, MOST = 4 };
    char each[BYTES] = {0}, all[MOST * BYTES] = {0};
    int counts[MOST], offsets[MOST];
    MPI_Comm half, inter;
    MPI_Request request;
    int value = 9, sum = 0, group, root;

    start();
    group = rank < size / 2 ? 0 : 1;
    MPI_Comm_split(MPI_COMM_WORLD, group, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, group ? 0 : size / 2, 1, &inter);
    if (rank == 0)
        MPI_Bcast(&value, 1, MPI_INT, MPI_ROOT, inter);
    else if (group == 0)
        MPI_Bcast(NULL, 0, nothing, MPI_PROC_NULL, inter);
    else
        MPI_Bcast(&value, 1, MPI_INT, 0, inter);
    CHECK(value == 9);
    root = group ? 0 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
    MPI_Reduce(&value, &sum, 1, MPI_INT, MPI_SUM, root, inter);
    CHECK(rank || sum == 9 * (size - size / 2));
    CHECK(size <= MOST);
    for (int i = 0; i < size; i++) {
        counts[i] = BYTES;
        offsets[i] = i * BYTES;
    }
    MPI_Ibcast(each, BYTES, MPI_CHAR, root, inter, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Gather(each, BYTES, MPI_CHAR, all, BYTES, MPI_CHAR, root, inter);
    MPI_Gatherv(each, BYTES, MPI_CHAR, all, counts, offsets, MPI_CHAR, root, inter);
    MPI_Scatter(all, BYTES, MPI_CHAR, each, BYTES, MPI_CHAR, root, inter);
    MPI_Scatterv(all, counts, offsets, MPI_CHAR, each, BYTES, MPI_CHAR, root, inter);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
    rounds(MPI_COMM_WORLD, 10);
    finish();
}

/* Everybody contributes 600 bytes to each of these, out of the buffer that takes the result, and
 * none is routed. */
static void in_place(void)
{
    enum { BYTES = 600, MOST = 4 };
    char data[MOST * BYTES] = {0}, own[BYTES];
    int counts[MOST], offsets[MOST], part[MOST];
    MPI_Datatype types[MOST];

    start();
    CHECK(size <= MOST);
    for (int i = 0; i < size; i++) {
        counts[i] = BYTES;
        part[i] = BYTES / size;
        offsets[i] = i * BYTES;
        types[i] = MPI_CHAR;
    }
    MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, data, counts, offsets, MPI_CHAR,
                   MPI_COMM_WORLD);
    MPI_Gatherv(rank ? own : MPI_IN_PLACE, BYTES, MPI_CHAR, data, counts, offsets, MPI_CHAR, 0,
                MPI_COMM_WORLD);
    MPI_Scatterv(data, counts, offsets, MPI_CHAR, rank ? own : MPI_IN_PLACE, BYTES, MPI_CHAR, 0,
                 MPI_COMM_WORLD);
    MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, data, part, offsets, MPI_CHAR,
                  MPI_COMM_WORLD);
    MPI_Alltoallw(MPI_IN_PLACE, NULL, NULL, NULL, data, part, offsets, types, MPI_COMM_WORLD);
    finish();
}

/* Messages whose length rank 0 alone can tell at a glance: it alone finds that a communicator has
 * been used enough to be set up. */
static void uneven_use(void)
{
    enum { BYTES = 1 << 20 };
    static char data[BYTES];
    MPI_Datatype all;

    start();
    MPI_Type_contiguous(BYTES, MPI_BYTE, &all);
    MPI_Type_commit(&all);
    for (int i = 0; i < 40; i++) {
        memset(data, rank ? 0 : i + 1, sizeof data);
        CHECK(MPI_Bcast(data, rank ? 1 : BYTES, rank ? all : MPI_BYTE, 0, MPI_COMM_WORLD) ==
              MPI_SUCCESS);
        CHECK(data[0] == i + 1 && data[BYTES - 1] == i + 1);
    }
    MPI_Type_free(&all);
    finish();
}

/* Nonblocking collectives under way together, which are over in another order than they began. */
static void out_of_order(void)
{
    enum { AT_ONCE = 4 };
    const int order[AT_ONCE] = {1, 3, 0, 2};
    MPI_Request request[AT_ONCE];

    start();
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < AT_ONCE; i++)
            MPI_Ibarrier(MPI_COMM_WORLD, &request[i]);
        for (int i = 0; i < AT_ONCE; i++)
            MPI_Wait(&request[order[i]], MPI_STATUS_IGNORE);
    }
    finish();
}

/* As long as a range of a policy, and by as little as can be longer. */
static void two_sizes(void)
{
    enum { LAST = 64, INTS = LAST / 4, ROUNDS = 10 };
    char bytes[LAST + 1];
    int ints[INTS + 1];

    start();
    for (int i = 0; i < ROUNDS; i++)
        for (int more = 0; more < 2; more++) {
            memset(bytes, rank ? 0 : i + 1, sizeof bytes);
            CHECK(MPI_Bcast(bytes, LAST + more, MPI_BYTE, 0, MPI_COMM_WORLD) == MPI_SUCCESS);
            CHECK(bytes[LAST - 1 + more] == i + 1);
            for (int k = 0; k < INTS + more; k++)
                ints[k] = rank + k + i;
            CHECK(MPI_Allreduce(MPI_IN_PLACE, ints, INTS + more, MPI_INT, MPI_SUM,
                                MPI_COMM_WORLD) == MPI_SUCCESS);
            for (int k = 0; k < INTS + more; k++)
                CHECK(ints[k] == size * (size - 1) / 2 + size * (k + i));
        }
    finish();
}

/* Communicators are on their way that the other rank has yet to take part in, where another one has
 * been used for long enough: nobody may wait there for them. */
static void some_on_their_way(void)
{
    enum { MADE = 3 };
    MPI_Comm used, made[MADE];
    MPI_Request request[MADE];

    start();
    MPI_Comm_dup(MPI_COMM_WORLD, &used);
    for (int i = 0; rank == 0 && i < MADE; i++)
        MPI_Comm_idup(MPI_COMM_WORLD, &made[i], &request[i]);
    rounds(used, 20);
    for (int i = 0; rank != 0 && i < MADE; i++)
        MPI_Comm_idup(MPI_COMM_WORLD, &made[i], &request[i]);
    for (int i = 0; i < MADE; i++)
        MPI_Wait(&request[i], MPI_STATUS_IGNORE);
    for (int i = 0; i < MADE; i++) {
        rounds(made[i], 20);
        MPI_Comm_free(&made[i]);
    }
    MPI_Comm_free(&used);
    finish();
}

/* A copy of the communicator that is set up meanwhile. */
static void own_copy_on_its_way(void)
{
    start();
    for (int i = 0; i < 30; i++) {
        MPI_Comm parent, child;
        MPI_Request request;
        MPI_Comm_dup(MPI_COMM_WORLD, &parent);
        usleep((useconds_t)rank * 300);
        MPI_Comm_idup(parent, &child, &request);
        rounds(parent, 3);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        rounds(child, 3);
        MPI_Comm_free(&child);
        MPI_Comm_free(&parent);
    }
    finish();
}

static int copies, deletions;

static int copied(MPI_Comm comm, int key, void *extra, void *value, void *copy, int *flag)
{
    (void)comm, (void)key, (void)extra;
    copies++;
    *(void **)copy = value;
    *flag = 1;
    return MPI_SUCCESS;
}

static int deleted(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)key, (void)value, (void)extra;
    deletions++;
    return MPI_Barrier(comm);
}

/* What a program hangs on its communicators goes nowhere but where the program copies it to. */
static void attributes(void)
{
    MPI_Comm comm;
    int key;

    start();
    MPI_Comm_create_keyval(copied, deleted, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_WORLD, key, NULL);
    rounds(MPI_COMM_WORLD, 50);
    CHECK(copies == 0);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    rounds(comm, 50);
    CHECK(copies == 1);
    MPI_Comm_free(&comm);
    CHECK(deletions == 1);
    MPI_Comm_delete_attr(MPI_COMM_WORLD, key);
    CHECK(deletions == 2);
    finish();
    CHECK(deletions == 2);
}

/* What a program has in errno is its own, whatever calls of the system a collective makes. */
static void keeps_errno(void)
{
    enum { BYTES = 1 << 20, OWN = EXDEV };
    char *data = calloc(BYTES, 1);

    CHECK(data);
    start();
    for (int of = 0; of < 3; of++) {
        MPI_Comm comm;
        CHECK(!MPI_Comm_dup(MPI_COMM_WORLD, &comm));
        for (int i = 0; i < 100; i++) {
            int one = 1, sum = 0;
            /* Those who wait for long also yield, and sleep. */
            if (i % 50 == 40 && rank == of)
                usleep(50000);
            errno = OWN;
            CHECK(!MPI_Barrier(comm) && errno == OWN);
            CHECK(!MPI_Bcast(data, i % 10 ? i : BYTES, MPI_CHAR, i % size, comm) && errno == OWN);
            CHECK(!MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm) && errno == OWN);
            CHECK(sum == size);
        }
        CHECK(!MPI_Comm_free(&comm));
    }
    free(data);
    finish();
}

static const struct weather weather_calls[] = {
    {"no-calls", no_calls},
    {"plain", plain},
    {"one-past", one_past},
    {"many", many},
    {"apart", apart},
    {"never-waits", never_waits},
    {"beside-the-root", beside_the_root},
    {"in-place", in_place},
    {"out-of-order", out_of_order},
    {"two-sizes", two_sizes},
    {"uneven-use", uneven_use},
    {"some-on-their-way", some_on_their_way},
    {"own-copy-on-its-way", own_copy_on_its_way},
    {"attributes", attributes},
    {"keeps-errno", keeps_errno},
    {"inexact", inexact},
    {"late-elsewhere", late_elsewhere},
    {"nobody-reads", nobody_reads},
    {"read-slowly", read_slowly},
    {0},
};

static bool run(const struct weather *each, const char *name)
{
    while (each->name && strcmp(each->name, name) != 0)
        each++;
    if (each->name)
        each->run();
    return each->name;
}

int main(int argc, char **argv)
{
    if (argc == 2 &&
        (run(weather_calls, argv[1]) || run(weather_ends, argv[1]) ||
         run(weather_errors, argv[1]) || run(weather_processes, argv[1]) ||
         run(weather_sessions, argv[1]) || run(weather_traced, argv[1]) ||
         run(weather_types, argv[1]) || run(weather_nested, argv[1]) || run(weather_lack, argv[1])))
        return 0;
    fprintf(stderr, "usage: weather CASE\n");
    return 2;
}
