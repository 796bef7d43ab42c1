/* Ranks that die, fork, become another program, or have threads. */
#include "tests/programs/weather.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void kill_myself(int number)
{
    (void)number;
    kill(getpid(), SIGKILL);
}

/* The last rank dies while it waits in a barrier, to which the others come later. */
static void killed(void)
{
    start();
    rounds(MPI_COMM_WORLD, 100);
    if (rank == size - 1) {
        struct itimerval soon = {.it_value = {.tv_usec = 200000}};
        signal(SIGALRM, kill_myself);
        setitimer(ITIMER_REAL, &soon, NULL);
    } else {
        struct timespec later = {.tv_nsec = 600000000};
        while (nanosleep(&later, &later) && errno == EINTR)
            ;
    }
    for (;;)
        MPI_Barrier(MPI_COMM_WORLD);
}

/* A barrier that rank 0 comes to late: nobody leaves before. */
static void late_barrier(MPI_Comm comm)
{
    struct timespec now;
    double entered, left;

    if (rank == 0)
        usleep(200000);
    clock_gettime(CLOCK_MONOTONIC, &now);
    entered = (double)now.tv_sec + (double)now.tv_nsec / 1e9;
    CHECK(MPI_Barrier(comm) == MPI_SUCCESS);
    clock_gettime(CLOCK_MONOTONIC, &now);
    left = (double)now.tv_sec + (double)now.tv_nsec / 1e9;
    MPI_Bcast(&entered, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    CHECK(left >= entered);
}

/* Children that end in every way there is, between and after collectives. */
static void forks(void)
{
    int status;
    MPI_Comm comm;

    start();
    rounds(MPI_COMM_WORLD, 50);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    rounds(comm, 50);
    for (int i = 0; i < 8; i++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            alarm(20);
            if (i % 4 == 0)
                _exit(7);
            if (i % 4 == 1)
                exit(7);      /* runs what libraries do at exit */
            if (i % 4 == 2) { /* as a library may do there */
                MPI_Comm_free(&comm);
                exit(7);
            }
            execl("/bin/sh", "sh", "-c", "exit 7", (char *)NULL);
            _exit(1);
        }
        one_round(MPI_COMM_WORLD, i);
        CHECK(waitpid(child, &status, 0) == child);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
        one_round(MPI_COMM_WORLD, i);
        if (i % 4 == 2)
            late_barrier(comm);
        one_round(comm, i);
    }
    status = system("exit 3");
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 3);
    MPI_Comm_free(&comm);
    rounds(MPI_COMM_WORLD, 50);
    finish();
}

/* A rank that becomes another program. */
static void exec_away(void)
{
    start();
    rounds(MPI_COMM_WORLD, 50);
    finish();
    execl("/bin/sh", "sh", "-c", "exit 0", (char *)NULL);
}

/* MPI_Init for threads; false, after all that is to be said, where the MPI library has none. */
static bool start_threads(void)
{
    int provided;

    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (provided < MPI_THREAD_MULTIPLE) {
        if (rank == 0)
            printf("skip\n");
        MPI_Finalize();
    }
    return provided == MPI_THREAD_MULTIPLE;
}

static int thread_rounds = 300;

static void *thread(void *comm)
{
    rounds(*(MPI_Comm *)comm, thread_rounds);
    return NULL;
}

/* Concurrent collectives on different communicators. */
static void threads(void)
{
    enum { THREADS = 3 };
    pthread_t id[THREADS];
    MPI_Comm comm[THREADS];

    if (!start_threads())
        return;
    for (int i = 0; i < THREADS; i++)
        MPI_Comm_dup(MPI_COMM_WORLD, &comm[i]);
    for (int i = 0; i < THREADS; i++)
        CHECK(!pthread_create(&id[i], NULL, thread, &comm[i]));
    for (int i = 0; i < THREADS; i++) {
        CHECK(!pthread_join(id[i], NULL));
        MPI_Comm_free(&comm[i]);
    }
    finish();
}

static MPI_Comm comm_beside, comm_inside;
static pthread_t beside;

/* What tests/constructor.c runs: meanwhile whoever else needs the loader has to wait. */
void in_constructor(void);
void in_constructor(void)
{
    CHECK(!pthread_create(&beside, NULL, thread, &comm_beside));
    usleep(200000);
    thread(&comm_inside);
}

void rounds_in_constructor(MPI_Comm inside, MPI_Comm outside)
{
    thread_rounds = 20; /* of more ranks than CPUs, until all is set up by the MPI library */
    comm_inside = inside;
    comm_beside = outside;
    CHECK(dlopen(getenv("COLLX_TEST_CONSTRUCTOR"), RTLD_NOW));
    CHECK(!pthread_join(beside, NULL));
}

/* Nobody's first rank has been that of MPI_COMM_WORLD. */
static void constructor(void)
{
    MPI_Comm inside, outside;

    if (!start_threads())
        return;
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &inside);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &outside);
    rounds_in_constructor(inside, outside);
    MPI_Comm_free(&inside);
    MPI_Comm_free(&outside);
    finish();
}

/* A datatype of so many blocks with gaps, and an operation, which a call uses while they are freed.
 */
enum { LATE_US = 300000, FREED_US = 100000, BLOCKS_MOST = 1000, PITCH = 4 };
static MPI_Datatype made_type;
static MPI_Op made_op;
static int types_deleted;

static int block_length(int i)
{
    return 1 + i % 3;
}

static int note_deleted(MPI_Datatype type, int key, void *value, void *extra)
{
    (void)type, (void)key, (void)value, (void)extra;
    types_deleted++;
    return MPI_SUCCESS;
}

static void make_type(int blocks)
{
    static int key = MPI_KEYVAL_INVALID;
    int length[BLOCKS_MOST], at[BLOCKS_MOST];

    for (int i = 0; i < blocks; i++)
        length[i] = block_length(i), at[i] = PITCH * i;
    MPI_Type_indexed(blocks, length, at, MPI_DOUBLE, &made_type);
    MPI_Type_commit(&made_type);
    if (key == MPI_KEYVAL_INVALID)
        MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, note_deleted, &key, NULL);
    MPI_Type_set_attr(made_type, key, NULL);
}

/* What has become free gets another content. */
static void use_memory(void)
{
    enum { COUNT = 1000 };
    char *block[COUNT];

    for (int i = 0; i < COUNT; i++) {
        const size_t size = 16 + (size_t)(i * 37 % 4000);
        block[i] = malloc(size);
        memset(block[i], 0x5a, size);
    }
    for (int i = 0; i < COUNT; i++)
        free(block[i]);
}

/* A type may be had again, from another that was made of it, and be freed twice. */
static void *free_type_meanwhile(void *unused)
{
    MPI_Datatype around, again;
    int count;

    MPI_Type_contiguous(1, made_type, &around);
    usleep(FREED_US);
    MPI_Type_get_contents(around, 1, 0, 1, &count, NULL, &again);
    MPI_Type_free(&around);
    MPI_Type_free(&made_type);
    CHECK(made_type == MPI_DATATYPE_NULL);
    MPI_Type_free(&again);
    use_memory();
    return unused;
}

static void *free_op_meanwhile(void *unused)
{
    usleep(FREED_US);
    MPI_Op_free(&made_op);
    CHECK(made_op == MPI_OP_NULL);
    use_memory();
    return unused;
}

static void bcast_meanwhile(int blocks)
{
    double *buf = calloc((size_t)blocks * PITCH, sizeof *buf);
    MPI_Datatype used;
    pthread_t freer;

    make_type(blocks);
    used = made_type;
    types_deleted = 0;
    for (int i = 0; i < 40; i++)
        MPI_Bcast(buf, 1, used, 0, MPI_COMM_WORLD);
    CHECK(!pthread_create(&freer, NULL, free_type_meanwhile, NULL));
    if (rank == 0) {
        usleep(LATE_US);
        CHECK(!pthread_join(freer, NULL));
        CHECK(types_deleted == 1);
        make_type(blocks);
        used = made_type;
        for (int i = 0; i < PITCH * blocks; i++)
            buf[i] = i + 1;
    }
    MPI_Bcast(buf, 1, used, 0, MPI_COMM_WORLD);
    if (rank == 0)
        MPI_Type_free(&made_type);
    else
        CHECK(!pthread_join(freer, NULL));
    CHECK(types_deleted == (rank ? 1 : 2));
    for (int i = 0; rank && i < PITCH * blocks; i++)
        CHECK(buf[i] == (i % PITCH < block_length(i / PITCH) ? i + 1 : 0));
    free(buf);
}

static void add_up(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *count; i++)
        ((double *)inout)[i] += ((double *)in)[i];
}

struct sum {
    MPI_Comm comm;
    MPI_Op op;
    int count;
    bool late;
};

static void *sum_up(void *arg)
{
    struct sum *sum = arg;
    double *in = calloc((size_t)sum->count, sizeof *in),
           *out = calloc((size_t)sum->count, sizeof *out);

    for (int i = 0; i < sum->count; i++)
        in[i] = i;
    if (sum->late)
        usleep(LATE_US);
    MPI_Allreduce(in, out, sum->count, MPI_DOUBLE, sum->op, sum->comm);
    for (int i = 0; i < sum->count; i++)
        CHECK(out[i] == (double)size * i);
    free(in);
    free(out);
    return NULL;
}

/* Two calls that use the same operation: it is freed when both are over. */
static void allreduce_meanwhile(int count, MPI_Comm other)
{
    pthread_t freer, second;

    MPI_Op_create(add_up, 1, &made_op);
    struct sum sums[] = {{MPI_COMM_WORLD, made_op, count, rank == 0},
                         {other, made_op, count, rank == 1}};
    for (int i = 0; i < 2; i++)
        sum_up(&sums[i]);
    CHECK(!pthread_create(&second, NULL, sum_up, &sums[1]));
    if (rank > 1)
        CHECK(!pthread_create(&freer, NULL, free_op_meanwhile, NULL));
    sum_up(&sums[0]);
    CHECK(!pthread_join(second, NULL));
    if (rank > 1)
        CHECK(!pthread_join(freer, NULL));
    else
        MPI_Op_free(&made_op);
}

/* What another thread frees a call that is under way goes on using. */
static void freed_meanwhile(void)
{
    MPI_Comm other;

    if (!start_threads())
        return;
    bcast_meanwhile(20);          /* whose layout is kept */
    bcast_meanwhile(BLOCKS_MOST); /* in pieces too short to be worth looking at at once */
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    allreduce_meanwhile(4, other);
    allreduce_meanwhile(100000, other);
    MPI_Comm_free(&other);
    finish();
}

/* What may get its handle has no bytes. */
static MPI_Datatype empty_types[8];

static void *make_empty_meanwhile(void *unused)
{
    usleep(FREED_US);
    MPI_Type_free(&made_type);
    for (size_t i = 0; i < sizeof empty_types / sizeof *empty_types; i++)
        MPI_Type_contiguous(0, MPI_INT, &empty_types[i]);
    return unused;
}

/* Ranks but the first are late to return from the Bcast (late_to_return.c) when their type has
 * gone: it counts all the same, as the first call on a communicator and as a later one. */
static void freed_in_warm_up(void)
{
    double buf[3 * PITCH] = {0};
    pthread_t freer;
    MPI_Comm comm;

    if (!start_threads())
        return;
    for (int before = 0; before < 2; before++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        for (int i = 0; i < before; i++)
            MPI_Barrier(comm);
        make_type(3);
        const MPI_Datatype used = made_type;
        if (rank) {
            setenv("LATE_TO_RETURN", "Bcast", 1);
            CHECK(!pthread_create(&freer, NULL, make_empty_meanwhile, NULL));
        }
        MPI_Bcast(buf, 1, used, 0, comm);
        if (rank)
            CHECK(!pthread_join(freer, NULL));
        else
            MPI_Type_free(&made_type);
        for (size_t i = 0; rank && i < sizeof empty_types / sizeof *empty_types; i++)
            MPI_Type_free(&empty_types[i]);
        rounds(comm, 50);
        MPI_Comm_free(&comm);
    }
    finish();
}

static int (*thread_start)(MPI_Comm comm), (*thread_finish)(MPI_Comm comm);

static void *be_rank(void *comm)
{
    const MPI_Comm all = *(MPI_Comm *)comm;
    int own, ranks, sum;

    thread_start(all);
    MPI_Comm_rank(all, &own);
    MPI_Comm_size(all, &ranks);
    CHECK(ranks == 2 * size);
    for (int i = 0; i < 50; i++) {
        const int value = own + i;
        MPI_Barrier(all);
        MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, all);
        CHECK(sum == ranks * (ranks - 1) / 2 + ranks * i);
    }
    thread_finish(all);
    return NULL;
}

/* A communicator whose ranks are threads: threads_as_ranks.c has the functions for it. */
static void threads_as_ranks(void)
{
    pthread_t second;
    MPI_Comm comm;

    if (!start_threads())
        return;
    int (*init)(MPI_Comm, int, MPI_Comm *) =
        (int (*)(MPI_Comm, int, MPI_Comm *))dlsym(RTLD_DEFAULT, "MPIX_Threadcomm_init");
    int (*release)(MPI_Comm *) = (int (*)(MPI_Comm *))dlsym(RTLD_DEFAULT, "MPIX_Threadcomm_free");
    thread_start = (int (*)(MPI_Comm))dlsym(RTLD_DEFAULT, "MPIX_Threadcomm_start");
    thread_finish = (int (*)(MPI_Comm))dlsym(RTLD_DEFAULT, "MPIX_Threadcomm_finish");
    CHECK(init && release && thread_start && thread_finish);
    init(MPI_COMM_WORLD, 2, &comm);
    CHECK(!pthread_create(&second, NULL, be_rank, &comm));
    be_rank(&comm);
    CHECK(!pthread_join(second, NULL));
    release(&comm);
    rounds(MPI_COMM_WORLD, 50);
    finish();
}

/* Not before they have had many calls, which all went well. */
static void use_until_one_is_lost(MPI_Comm comm)
{
    const int count = 200;
    int error = MPI_SUCCESS, class;

    rounds(comm, count);
    if (rank == size - 1)
        kill_myself(0);
    for (int i = 0; i < count && !error; i++)
        error = MPI_Barrier(comm);
    CHECK(error);
    MPI_Error_class(error, &class);
    CHECK(class != MPI_ERR_COMM && class != MPI_ERR_OTHER);
}

/* The last rank dies, and the others, of which one may wait for it and the other for that one, go
 * on without it: with functions that Open MPI has from 5.0 on, under mpirun --with-ft. */
static void loses_a_rank(void)
{
    int (*revoke)(MPI_Comm) = (int (*)(MPI_Comm))dlsym(RTLD_DEFAULT, "MPIX_Comm_revoke");
    int (*shrink)(MPI_Comm, MPI_Comm *) =
        (int (*)(MPI_Comm, MPI_Comm *))dlsym(RTLD_DEFAULT, "MPIX_Comm_shrink");
    MPI_Comm all, rest;
    int left;

    start();
    CHECK(revoke && shrink);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_dup(MPI_COMM_WORLD, &all);
    use_until_one_is_lost(all);
    CHECK(!revoke(all) && !shrink(all, &rest));
    MPI_Comm_size(rest, &left);
    CHECK(left == size - 1);
    rounds(rest, 200);
    MPI_Comm_free(&rest);
    MPI_Comm_free(&all);
    finish();
}

const struct weather weather_processes[] = {
    {"killed", killed},
    {"loses-a-rank", loses_a_rank},
    {"forks", forks},
    {"exec", exec_away},
    {"threads", threads},
    {"freed-meanwhile", freed_meanwhile},
    {"freed-in-warm-up", freed_in_warm_up},
    {"constructor", constructor},
    {"threads-as-ranks", threads_as_ranks},
    {0},
};
