/* Ranks that die, fork, become another program, or have threads. */
#include "tests/programs/weather.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
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

const struct weather weather_processes[] = {
    {"killed", killed},           {"forks", forks},
    {"exec", exec_away},          {"threads", threads},
    {"constructor", constructor}, {0},
};
