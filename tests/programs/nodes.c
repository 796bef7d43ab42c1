/* Barriers on communicators whose ranks are in any order over their nodes, which come and go.
 *
 * usage: nodes BOARD ROUNDS        BOARD is a file that all ranks may map
 *        nodes late RANK SECONDS   that rank comes to a barrier so much later
 * tests/run_nodes.py runs it.
 */
#include "tests/end_well.h"
#include "tests/programs/check.h"
#include "tests/programs/set_up.h"

#include <mpi.h>

#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { COMMS = 12, RANKS = 64 };

static int rank, size;
static unsigned dice;
static int round_now;

/* In which round each rank of MPI_COMM_WORLD is. */
static atomic_int *entered;

static unsigned roll(void)
{
    return (dice = dice * 1103515245 + 12345) >> 16;
}

/* `comm` has the same ranks as MPI_COMM_WORLD. */
static void barriers(MPI_Comm comm, int rounds)
{
    for (int i = 0; i < rounds; i++) {
        round_now++;
        if (roll() % 16 == 0)
            usleep(roll() % 200);
        atomic_store(&entered[rank], round_now);
        CHECK(MPI_Barrier(comm) == MPI_SUCCESS);
        for (int other = 0; other < size; other++) {
            int at = atomic_load(&entered[other]);
            CHECK(at >= round_now && at <= round_now + 1);
        }
    }
}

static void map(const char *path)
{
    int fd = open(path, O_RDWR);

    CHECK(fd >= 0 && size <= RANKS);
    entered = mmap(NULL, RANKS * sizeof *entered, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(entered != MAP_FAILED);
    close(fd);
}

static void be_late(int late, int seconds)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == late)
        sleep((unsigned)seconds);
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    MPI_Comm comm[COMMS];

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    dice = (unsigned)rank + 1;
    use_until_set_up(MPI_COMM_WORLD);
    if (argc == 4 && strcmp(argv[1], "late") == 0) {
        be_late(atoi(argv[2]), atoi(argv[3]));
    } else {
        CHECK(argc == 3);
        map(argv[1]);
        barriers(MPI_COMM_WORLD, atoi(argv[2]));
        /* Backwards, and as if dealt out: the lowest rank of a node, and their order, are others
         * each time.  Some are freed at once, others last. */
        for (int i = 0; i < COMMS; i++) {
            MPI_Comm_split(MPI_COMM_WORLD, 0, i % 2 ? -rank : rank * (i + 2) % size, &comm[i]);
            use_until_set_up(comm[i]);
            barriers(comm[i], 10 + i);
            if (i % 4)
                MPI_Comm_free(&comm[i]);
        }
        barriers(MPI_COMM_WORLD, 10);
        for (int i = 0; i < COMMS; i += 4)
            MPI_Comm_free(&comm[i]);
    }
    end_well(rank);
    return 0;
}
