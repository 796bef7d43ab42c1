/* A job in which waiting decides whether it ends: everybody collects on several communicators, with
 * work in between that takes unequal time, with large messages under way, and with a rank that is
 * stopped again and again.
 *
 * usage: crowd [pairs]; with that two of three ranks collect, which have a CPU each.
 */
#include "tests/programs/check.h"
#include "tests/programs/set_up.h"

#include <mpi.h>

#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Too much for any MPI library to send before the receiver has answered. */
enum { MESSAGE = 8 << 20, COMMS = 5, ROUNDS = 12, OFTEN = 3000, LONGS = 1 << 15 };

static int rank, size;
static long values[LONGS], sums[LONGS];

static uint32_t draw(uint32_t *seed)
{
    *seed = *seed * 1664525 + 1013904223;
    return *seed >> 8;
}

static uint64_t now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static void work(uint64_t us)
{
    for (uint64_t end = now_us() + us; now_us() < end;)
        ;
}

/* All three, checked, with `count` numbers.  `seed` is the same on all ranks. */
static void collect(MPI_Comm comm, int count, uint32_t seed)
{
    int me, ranks, root;

    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &ranks);
    root = (int)(seed % (uint32_t)ranks);
    work((seed >> 3) % 7 == (uint32_t)me ? 300 : (uint32_t)me * 10);
    CHECK(MPI_Barrier(comm) == MPI_SUCCESS);
    for (int i = 0; i < count; i++)
        values[i] = me == root ? (long)seed + i : -1;
    CHECK(MPI_Bcast(values, count, MPI_LONG, root, comm) == MPI_SUCCESS);
    for (int i = 0; i < count; i++) {
        CHECK(values[i] == (long)seed + i);
        values[i] = me + i;
    }
    CHECK(MPI_Allreduce(values, sums, count, MPI_LONG, MPI_SUM, comm) == MPI_SUCCESS);
    for (int i = 0; i < count; i++)
        CHECK(sums[i] == (long)ranks * (ranks - 1) / 2 + (long)ranks * i);
}

/* Small counts above all, and now and then a large one. */
static int count_for(uint32_t seed)
{
    return (int)(seed % 5 == 0 ? seed % LONGS : seed % 3 == 0 ? seed % 1000 : seed % 8);
}

/* So many that nobody waits for their end who does not let others have the CPU. */
static void collect_often(void)
{
    for (int i = 0; i < OFTEN; i++) {
        int sum = -1;
        CHECK(MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS);
        CHECK(MPI_Allreduce(&i, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS);
        CHECK(sum == size * i);
    }
}

/* Every other rank sends to the next, which comes to the barrier only when it has all of it: the
 * message has to get through while its sender waits there. */
static void send_into_barrier(MPI_Comm comm, char *message)
{
    MPI_Request request;

    if (rank % 2 == 0 && rank + 1 < size) {
        memset(message, rank, MESSAGE);
        MPI_Isend(message, MESSAGE, MPI_CHAR, rank + 1, 1, MPI_COMM_WORLD, &request);
        CHECK(MPI_Barrier(comm) == MPI_SUCCESS);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        if (rank % 2)
            MPI_Recv(message, MESSAGE, MPI_CHAR, rank - 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(MPI_Barrier(comm) == MPI_SUCCESS);
    }
    CHECK(rank % 2 == 0 || (message[0] == rank - 1 && message[MESSAGE - 1] == rank - 1));
}

/* A child that stops this process, wherever it is, and lets it go on, three times. */
static pid_t start_stopper(void)
{
    const struct timespec soon = {.tv_nsec = 30000000}, later = {.tv_nsec = 150000000};
    pid_t parent = getpid(), child = fork();

    CHECK(child >= 0);
    if (child)
        return child;
    for (int i = 0; i < 3; i++) {
        nanosleep(&soon, NULL);
        kill(parent, SIGSTOP);
        nanosleep(&later, NULL);
        kill(parent, SIGCONT);
    }
    _exit(0);
}

/* Collects until the stopper of rank 1 is done. */
static void with_stopped_rank(const MPI_Comm *comms, uint32_t *seed)
{
    pid_t stopper = rank == 1 ? start_stopper() : 0;
    int stopping = rank == 1, anybody = 1;

    while (anybody) {
        collect(comms[draw(seed) % COMMS], 1 + count_for(*seed), *seed);
        if (stopping && waitpid(stopper, NULL, WNOHANG) == stopper)
            stopping = 0;
        CHECK(MPI_Allreduce(&stopping, &anybody, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD) ==
              MPI_SUCCESS);
    }
}

static void among_pairs(void)
{
    MPI_Comm pair;

    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &pair);
    use_until_set_up(pair);
    for (uint32_t i = 0; i < ROUNDS; i++)
        collect(pair, 8, i);
    MPI_Comm_free(&pair);
}

static void among_all(void)
{
    char *message = malloc(MESSAGE);
    MPI_Comm comms[COMMS] = {MPI_COMM_WORLD};
    uint32_t seed = 1;

    CHECK(message);
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comms[2]);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &comms[3]);
    MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &comms[4]);
    for (int c = 0; c < COMMS; c++)
        use_until_set_up(comms[c]);
    for (int i = 0; i < ROUNDS; i++) {
        for (int c = 0; c < COMMS; c++) {
            draw(&seed);
            collect(comms[c], count_for(seed), seed);
        }
        if (i % 4 == 3)
            send_into_barrier(comms[i % 3], message);
    }
    collect_often();
    with_stopped_rank(comms, &seed);
    for (int c = 1; c < COMMS; c++)
        MPI_Comm_free(&comms[c]);
    free(message);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc > 1)
        among_pairs();
    else
        among_all();
    if (rank == 0)
        printf("good\n");
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
