/* Collectives by several threads at once, each on a communicator of its own. */
#include "conformance.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { THREADS = 3, COUNT_MAX = 3000 };

struct work {
    int id, rounds;
    MPI_Comm comm;
};

static void one_round(const struct work *work, int round)
{
    int in[COUNT_MAX], out[COUNT_MAX];
    int count = round % 40 == 0 ? COUNT_MAX : round % 50, root = round % cf_size;
    int sum = cf_size * (cf_size - 1) / 2;

    cf_case("thread %d, round %d, %d x MPI_INT", work->id, round, count);
    for (int i = 0; i < count; i++) {
        in[i] = cf_rank + i + work->id;
        out[i] = -1;
    }
    if (cf_ok(MPI_Allreduce(in, out, count, MPI_INT, MPI_SUM, work->comm)))
        for (int i = 0; i < count; i++)
            if (out[i] != sum + cf_size * (i + work->id)) {
                cf_fail("MPI_Allreduce, element %d: %d, expected %d", i, out[i],
                        sum + cf_size * (i + work->id));
                break;
            }
    for (int i = 0; i < count; i++)
        in[i] = cf_rank == root ? round * 7 + i + work->id : -1;
    if (cf_ok(MPI_Bcast(in, count, MPI_INT, root, work->comm)))
        for (int i = 0; i < count; i++)
            if (in[i] != round * 7 + i + work->id) {
                cf_fail("MPI_Bcast, element %d: %d, expected %d", i, in[i],
                        round * 7 + i + work->id);
                break;
            }
    cf_show(2 + work->id, (uint64_t)round + 1);
    if (cf_ok(MPI_Barrier(work->comm)))
        for (int i = 0; i < cf_size; i++)
            if (cf_seen(2 + work->id, i) < (uint64_t)round + 1)
                cf_fail("MPI_Barrier: left before rank %d had come", i);
}

static void *run(void *argument)
{
    const struct work *work = argument;

    /* Communicators are set up by several threads at once, too. */
    cf_warm_up(work->comm);
    for (int round = 0; round < work->rounds; round++)
        one_round(work, round);
    return NULL;
}

void cf_test_threads(void)
{
    struct work work[THREADS];
    pthread_t thread[THREADS];

    _Static_assert(2 + THREADS <= CF_BOARDS, "one board for each");
    for (int i = 0; i < THREADS; i++) {
        work[i] = (struct work){.id = i, .rounds = cf_quick ? 20 : 400};
        MPI_Comm_dup(MPI_COMM_WORLD, &work[i].comm);
        cf_show(2 + i, 0);
    }
    cf_sync();
    for (int i = 0; i < THREADS; i++)
        pthread_create(&thread[i], NULL, run, &work[i]);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    for (int i = 0; i < THREADS; i++)
        MPI_Comm_free(&work[i].comm);
}
