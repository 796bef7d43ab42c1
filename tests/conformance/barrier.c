/* MPI_Barrier: nobody leaves before the last has come. */
#include "conformance.h"

#include <time.h>
#include <unistd.h>

enum { ENTERED };

static void busy(uint64_t ns)
{
    struct timespec now;
    uint64_t end;

    clock_gettime(CLOCK_MONOTONIC, &now);
    end = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec + ns;
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while ((uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec < end);
}

static void round_of(MPI_Comm comm, uint64_t round)
{
    cf_show(ENTERED, round);
    if (!cf_ok(MPI_Barrier(comm)))
        return;
    for (int i = 0; i < cf_size; i++)
        if (cf_seen(ENTERED, i) < round) {
            cf_fail("left round %ju while rank %d was still in round %ju", (uintmax_t)round, i,
                    (uintmax_t)cf_seen(ENTERED, i));
            return;
        }
}

void cf_test_barrier(void)
{
    int rounds = cf_quick ? 60 : cf_size <= 2 ? 30000 : cf_size > 4 ? 1500 : 3000;
    struct cf_random delay = {99 + (uint64_t)cf_rank}, all = {98};
    MPI_Comm comm = cf_world_dup();
    uint64_t round = 0;

    cf_show(ENTERED, 0);
    cf_sync();
    for (int i = 0; i < rounds; i++) {
        cf_case("MPI_Barrier, round %d", i);
        round_of(comm, ++round);
    }
    /* One rank that is late, by more than anybody spins for. */
    for (int i = 0; i < rounds && i < 300; i++) {
        int late = (int)cf_random_below(&all, (uint64_t)cf_size);

        cf_case("MPI_Barrier, rank %d late, round %d", late, i);
        if (cf_rank == late)
            usleep((useconds_t)cf_random_below(&all, 300));
        else
            cf_random_next(&all);
        round_of(comm, ++round);
    }
    /* Everybody late as it pleases, and some sleeping a moment after they left. */
    for (int i = 0; i < rounds && i < 2000; i++) {
        cf_case("MPI_Barrier, random delays, round %d", i);
        busy(cf_random_below(&delay, 5000));
        round_of(comm, ++round);
        if (cf_random_below(&delay, 50) == 0)
            usleep(100);
    }
    MPI_Comm_free(&comm);
}
