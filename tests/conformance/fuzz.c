/* Random sequences of MPI_Barrier, MPI_Bcast and MPI_Allreduce on communicators that overlap.
 *
 *     usage: fuzz SEED STEPS [THREADS]
 *
 * The conformance tests try sizes, types and ops one after the other; their mixes of calls have one
 * type for each collective.  What they do not find is what one call leaves behind for the next: a
 * small message after one that took all slots, a reduction after a broadcast whose leaves are late,
 * the first call of a communicator that is set up while a neighbour is at its hundredth.  Here all
 * of it interleaves on communicators that overlap: sizes around the borders, another layout of one
 * signature on each rank, in place, an op that does not commute, bursts, threads, and buffers that
 * end where a page begins that nobody may touch.
 *
 * Ranks compute themselves what has to come, so that nothing keeps them together but the calls
 * that are tested; one step of so many is also done by the library's own collective.  All follows
 * from SEED but how the ranks are scheduled; a failure says all about its call.
 */
#include "fuzz.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    THREADS_MAX = CF_BOARDS,
    BURST = 40,               /* calls of a kind without anything between them */
    BURST_SIZES = 4,          /* that they have, in bytes */
    BURST_BYTES_MAX = 140000, /* of each */
    STEP_SECONDS = 60,        /* after which it is a hang */
    LIBRARY_TOO = 16,         /* one step of so many is compared with the library's own result */
};

static uint64_t seed;
static struct fuzz_thread threads[THREADS_MAX];

static int64_t border(struct cf_random *random, int64_t limit)
{
    int64_t bytes;

    do
        bytes = cf_sizes[cf_random_below(random, cf_sizes_count)];
    while (bytes > limit);
    return bytes;
}

static int64_t pick_bytes(struct cf_random *random)
{
    switch (cf_random_below(random, 6)) {
    case 0:
    case 1:
        return border(random, FUZZ_BYTES_MAX);
    case 2:
    case 3:
        return (int64_t)cf_random_below(random, 400);
    case 4:
        return (int64_t)cf_random_below(random, 20000);
    default:
        return (int64_t)cf_random_below(random, 200000);
    }
}

static void one_step(struct fuzz_thread *t, int step)
{
    struct fuzz_group *g = &t->group[cf_random_below(&t->order, FUZZ_COMMS)];
    uint64_t kind, times;
    int64_t bytes[BURST_SIZES];
    bool library_too;

    if (g->comm == MPI_COMM_NULL)
        return;
    kind = cf_random_below(&g->agreed, 8);
    times = cf_random_below(&g->agreed, 12) == 0 ? BURST : 1;
    for (int i = 0; i < BURST_SIZES; i++)
        bytes[i] = times == 1 ? pick_bytes(&g->agreed) : border(&g->agreed, BURST_BYTES_MAX);
    library_too = times == 1 && cf_random_below(&g->agreed, LIBRARY_TOO) == 0;
    snprintf(t->where, sizeof t->where, "seed %ju, step %d, thread %d, %s, rank %d of %d",
             (uintmax_t)seed, step, t->id, g->name, g->rank, g->size);
    alarm(STEP_SECONDS);
    if (cf_random_below(&t->own, 60) == 0)
        usleep((useconds_t)cf_random_below(&t->own, 500));
    for (uint64_t i = 0; i < times; i++) {
        int64_t now = bytes[cf_random_below(&g->agreed, BURST_SIZES)];

        if (kind == 0)
            fuzz_barrier(t, g, (uint64_t)step * BURST + i + 1);
        else if (kind < 4)
            fuzz_bcast(t, g, now, library_too);
        else
            fuzz_allreduce(t, g, now, library_too);
    }
}

static void *run(void *argument)
{
    struct fuzz_thread *t = argument;

    for (int step = 0; step < t->steps; step++)
        one_step(t, step);
    return NULL;
}

/* colour MPI_UNDEFINED: not in it. */
static void group_init(struct fuzz_group *g, const char *name, int colour, int key, MPI_Comm parent)
{
    int all[CF_RANKS_MAX];
    MPI_Group inner, outer;

    *g = (struct fuzz_group){.name = name, .comm = MPI_COMM_NULL};
    MPI_Comm_split(parent, colour, key, &g->comm);
    if (g->comm == MPI_COMM_NULL)
        return;
    MPI_Comm_rank(g->comm, &g->rank);
    MPI_Comm_size(g->comm, &g->size);
    MPI_Comm_group(g->comm, &inner);
    MPI_Comm_group(MPI_COMM_WORLD, &outer);
    for (int i = 0; i < g->size; i++)
        all[i] = i;
    MPI_Group_translate_ranks(inner, g->size, all, outer, g->world);
    MPI_Group_free(&inner);
    MPI_Group_free(&outer);
}

static void thread_init(struct fuzz_thread *t, int id, int steps)
{
    int last = cf_rank == 0 ? MPI_UNDEFINED : 0;

    *t = (struct fuzz_thread){.id = id, .steps = steps};
    t->order.state = cf_hash(seed, &id, sizeof id);
    t->own.state = cf_hash(t->order.state, &cf_rank, sizeof cf_rank);
    group_init(&t->group[0], "world", 0, cf_rank, MPI_COMM_WORLD);
    group_init(&t->group[1], "even or odd, reversed", cf_rank % 2, -cf_rank, MPI_COMM_WORLD);
    group_init(&t->group[2], "threes", cf_rank / 3, cf_rank, MPI_COMM_WORLD);
    group_init(&t->group[3], "all but rank 0, reversed", last, -cf_rank, MPI_COMM_WORLD);
    group_init(&t->group[4], "self", 0, 0, MPI_COMM_SELF);
    for (int i = 0; i < FUZZ_COMMS; i++)
        t->group[i].agreed.state =
            cf_hash(t->order.state + (uint64_t)i, t->group[i].world, sizeof t->group[i].world);
    fuzz_buffers_init(t);
}

int main(int argc, char **argv)
{
    int count = argc == 4 ? atoi(argv[3]) : 1, steps = argc >= 3 ? atoi(argv[2]) : 0, failures;
    int wanted = count > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, provided;
    pthread_t other[THREADS_MAX];

    if (argc < 3 || argc > 4 || steps < 1 || count < 1 || count > THREADS_MAX) {
        fprintf(stderr, "usage: fuzz SEED STEPS [THREADS, up to %d]\n", THREADS_MAX);
        return 2;
    }
    seed = strtoull(argv[1], NULL, 10);
    MPI_Init_thread(&argc, &argv, wanted, &provided);
    if (provided < wanted) {
        fprintf(stderr, "fuzz: this MPI does not support MPI_THREAD_MULTIPLE\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    cf_harness_init();
    cf_types_init();
    cf_values_init();
    fuzz_calls_init();
    for (int i = 0; i < count; i++)
        thread_init(&threads[i], i, steps);
    cf_area_begin("fuzz", STEP_SECONDS);
    for (int i = 1; i < count; i++)
        pthread_create(&other[i], NULL, run, &threads[i]);
    run(&threads[0]);
    for (int i = 1; i < count; i++)
        pthread_join(other[i], NULL);
    failures = cf_area_end();
    for (int i = 0; i < count; i++)
        for (int c = 0; c < FUZZ_COMMS; c++)
            if (threads[i].group[c].comm != MPI_COMM_NULL)
                MPI_Comm_free(&threads[i].group[c].comm);
    fuzz_calls_finish();
    cf_types_finish();
    cf_harness_finish();
    MPI_Finalize();
    return failures != 0;
}
