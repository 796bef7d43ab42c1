/* The measuring: rounds in which every route has its turn, between two looks at the machine. */
#include "bench/bench.h"

#include "algorithms/within/copy.h"
#include "base/clock.h"
#include "bench/elements.h"
#include "bench/shared.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    ROUNDS_LEAST = 3, /* that every point gets, however long they take */
    ROW_MOST = 4096,  /* calls one after the other */
};

/* What a batch calls: a collective, or nothing; a copy by each rank for itself; or one of the two
 * things that no collective can do without: to copy what another rank has just written, and an
 * exchange of flags. */
enum what { COLLECTIVE, NOTHING, COPY, READ, FLAGS };

struct task {
    enum what what;
    const struct point *point;
    const struct route *route; /* NULL: no collective */
    const struct elements *elements;
    int count;
    char *send, *receive;
    int calls;                /* the same on all ranks: chooses the root */
    bool kept, one_root, row; /* see struct manner */
    bool past;                /* what is read goes past the caches */
};

static char *memory[2];
static char *blocks; /* of each rank one of `block` bytes, which the others read */
static size_t block;
static struct collx_copy_ways ways;

static int root_of(const struct task *task)
{
    return task->one_root ? 0 : task->calls % machine.size;
}

static void call(const struct task *task)
{
    MPI_Datatype (*const make)(int count) =
        task->point->kind == COLLX_BARRIER ? NULL : task->elements->make;
    const struct own *way = task->route->own ? &own : &through;
    MPI_Comm comm = task->route->comm;
    MPI_Datatype type = make ? make(task->count) : task->elements->type;
    const int count = make ? 1 : task->count, root = root_of(task);

    switch (task->point->kind) {
    case COLLX_BARRIER:
        way->Barrier(comm);
        break;
    case COLLX_BCAST:
        way->Bcast(task->receive, count, type, root, comm);
        break;
    default:
        way->Allreduce(task->send, task->receive, count, type, task->elements->op, comm);
    }
    if (make)
        MPI_Type_free(&type);
}

/* Whether a rank has what is sent, at first. */
static bool gives(const struct task *task, int rank)
{
    return task->point->kind == COLLX_ALLREDUCE || rank == root_of(task);
}

static char *block_of(int rank)
{
    return blocks + (size_t)rank * block;
}

/* As fast as can be, for who has nothing else to do. */
static void read_other(const struct task *task)
{
    const bool all_give = task->point->kind == COLLX_ALLREDUCE;
    const int other = all_give ? (machine.rank + 1) % machine.size : root_of(task);

    if (other == machine.rank)
        return;
    (task->past ? ways.stream : ways.wide)(task->receive, block_of(other), task->point->bytes);
    collx_store_fence();
}

static void run(const struct task *task)
{
    switch (task->what) {
    case COLLECTIVE:
        call(task);
        break;
    case COPY:
        memcpy(task->receive, task->send, task->point->bytes);
        break;
    case READ:
        read_other(task);
        break;
    case FLAGS:
        machine_exchange();
        break;
    case NOTHING:
        break;
    }
    /* The copy is made, though nobody looks at it. */
    __asm__ volatile("" ::"r"(task->receive) : "memory");
}

/* What is sent has just been computed, in a program: it is in the caches of the CPU that sends it,
 * and of no other. */
static void renew(const struct task *task)
{
    char *data = NULL;

    if (task->what == COPY)
        data = task->send;
    else if (gives(task, machine.rank))
        data = task->what == READ                     ? block_of(machine.rank)
               : task->point->kind == COLLX_ALLREDUCE ? task->send
                                                      : task->receive;

    /* What lies in memory of elements with gaps is longer than the message. */
    const size_t bytes = task->what == COPY || task->what == READ
                             ? task->point->bytes
                             : (size_t)task->count * task->elements->extent;
    for (size_t at = 0; data && at < bytes; at += 64)
        *(volatile char *)(data + at) = data[at];
}

/* ns of a call, on rank 0; < 0 where all were late.  At most CALLS_MOST.  Some counters move in
 * steps of 10 ns, and all ranks start on one: a median would be a whole number of them. */
static double each_alone(struct task *task, int calls)
{
    double end[CALLS_MOST] = {0}, times[CALLS_MOST];

    /* The first does not count: it finds the caches as another route has left them. */
    for (int i = -1; i < calls; i++) {
        bool late;
        if (!task->kept)
            renew(task);
        uint64_t start = machine_start(&late);
        run(task);
        uint64_t now = machine_ticks();
        task->calls++;
        if (i >= 0)
            end[i] = late ? -1 : machine_ns(now - start);
    }
    int good = machine_slowest(end, calls, times);
    return good ? collx_middle_of(times, good) : -1;
}

/* The same of calls one after the other. */
static double in_a_row(struct task *task, int calls)
{
    double end, time;
    bool late;
    uint64_t start = 0;

    for (int i = -1; i < calls; i++) {
        if (i == 0)
            start = machine_start(&late);
        if (!task->kept)
            renew(task);
        run(task);
        task->calls++;
    }
    end = machine_ns(machine_ticks() - start);
    return machine_slowest(&end, 1, &time) ? time / calls : -1;
}

static double batch(struct task *task, int calls)
{
    return task->row ? in_a_row(task, calls) : each_alone(task, calls);
}

static const char *of; /* what messages are made of */

static struct task task_of(enum what what, const struct point *point, const struct route *route)
{
    const struct elements *elements =
        elements_find(of, point->kind == COLLX_ALLREDUCE, point->bytes);

    return (struct task){.what = what,
                         .point = point,
                         .route = route,
                         .elements = elements,
                         .count = (int)(point->bytes / elements->size),
                         .send = memory[0],
                         .receive = memory[1]};
}

/* What element i of what a rank gives is worth: little enough to add up in any type. */
static int given(int rank, int i)
{
    return (i + rank) % 5;
}

/* And what it is worth as it came from there. */
static int sent(const struct elements *elements, int rank, int i)
{
    _Alignas(max_align_t) char room[ELEMENT_MOST];

    elements->put(room, given(rank, i), rank);
    return elements->get(room);
}

static int right_sum(const struct elements *elements, int i)
{
    int sum = 0;

    if (elements->combined)
        return elements->combined(given, i, machine.size);
    for (int r = 0; r < machine.size; r++)
        sum += given(r, i);
    return elements->wraps ? (int8_t)sum : sum;
}

/* A figure for a wrong result is worth nothing. */
static void check(struct task *task)
{
    const struct elements *elements = task->elements;
    bool reduces = task->point->kind == COLLX_ALLREDUCE;
    int root = root_of(task);

    for (int i = 0; i < task->count; i++) {
        const size_t at = (size_t)i * elements->extent;
        elements->put(task->send + at, given(machine.rank, i), machine.rank);
        elements->put(task->receive + at, reduces ? 99 : given(machine.rank, i), machine.rank);
    }
    call(task);
    for (int i = 0; i < task->count; i++) {
        int right = reduces ? right_sum(elements, i) : sent(elements, root, i);
        int got = elements->get(task->receive + (size_t)i * elements->extent);
        if (got != right)
            fail("%s of %zu bytes by %s on rank %d: element %d is %d, not %d",
                 collx_kind_name(task->point->kind), task->point->bytes, task->route->name,
                 machine.rank, i, got, right);
    }
    task->calls++;
}

/* A route that tries what is best for a size has done so before it is measured: shm takes up to 96
 * calls to find out; with more ranks than CPUs it does so of long messages alone, and there every
 * call in vain takes long. */
static void let_settle(struct task *task)
{
    const struct point *point = task->point;
    const bool tries = !strncmp(route_runs(task->route, point->kind, point->bytes), "shm", 3) &&
                       (!machine.crowded || point->bytes >= 1 << 20);

    if (tries || !machine.crowded)
        for (int calls = tries ? 96 : 28; calls > 0; calls -= CALLS_MOST)
            batch(task, calls < CALLS_MOST ? calls : CALLS_MOST);
}

static struct round *add_round(struct point *point)
{
    if (point->rounds == point->room) {
        point->room = point->room ? 2 * point->room : 16;
        point->round = realloc(point->round, (size_t)point->room * sizeof *point->round);
        if (!point->round)
            fail("out of memory");
    }
    struct round *round = &point->round[point->rounds++];
    memset(round, 0, sizeof *round);
    return round;
}

/* How many calls make a batch of about that share of manner->batch_us; all ranks say the same. */
static int calls_for(double ns, const struct manner *manner, double share)
{
    const double between = manner->row ? 0 : 1500; /* ns */
    const uint64_t most = manner->row ? ROW_MOST : CALLS_MOST;
    double calls = share * manner->batch_us * 1000 / (fmax(ns, 100) + between);

    return (int)machine_agree(calls < 1 ? 1 : calls > (double)most ? most : (uint64_t)calls);
}

/* What a batch has taken without what measuring takes: the clock, and, with more ranks than CPUs,
 * the kernel's switches until each rank has heard of the start. */
static double less(double ns, double empty)
{
    return ns < 0 ? ns : fmax(ns - empty, 0);
}

/* Each for itself in any manner: in a row nobody would wait until there is something new. */
static double read_ns(const struct point *point, const struct manner *manner, int turn)
{
    struct manner alone = *manner;
    struct task nothing = task_of(NOTHING, point, NULL), task = task_of(READ, point, NULL);
    double best = -1;

    alone.row = false;
    nothing.kept = true;
    task.calls = turn;
    const double empty = fmax(batch(&nothing, CALLS_MOST / 2), 0);
    const int calls = calls_for((double)point->bytes / 5, &alone, 0.25);
    for (int past = 0; past <= (point->bytes >= COLLX_COPY_LARGE); past++) {
        task.past = past;
        double ns = less(batch(&task, calls), empty);
        best = best < 0 || (ns >= 0 && ns < best) ? ns : best;
    }
    return best;
}

static void one_round(struct point *point, const struct manner *manner, double *estimate)
{
    struct round *round = add_round(point);
    int turn = point->rounds;
    double before = machine_probe();
    struct task nothing = task_of(NOTHING, point, NULL), flags = task_of(FLAGS, point, NULL);

    nothing.kept = flags.kept = true;
    nothing.row = flags.row = manner->row;
    const double clock = fmax(batch(&nothing, manner->row ? ROW_MOST : CALLS_MOST / 2), 0);
    double empty = clock;
    /* In a row, what makes the data new is timed with each call: some 4 ns a line. */
    if (manner->row && !manner->kept && point->bytes) {
        nothing.kept = false;
        empty = fmax(batch(&nothing, calls_for((double)point->bytes / 16, manner, 0.25)), clock);
    }
    for (int i = 0; i < route_count; i++) {
        /* Who goes first changes, lest one always finds the caches as another left them. */
        int r = (turn % 2 ? i + turn / 2 : 2 * route_count - 1 - i + turn / 2) % route_count;
        round->ns[r] = -1;
        if (!route_counts(r, point->kind, point->bytes))
            continue;
        struct task task = task_of(COLLECTIVE, point, &routes[r]);
        task.calls = turn; /* where a batch has one call that counts, too, the root changes */
        task.one_root = manner->one_root;
        if (turn == 1)
            check(&task);
        task.kept = manner->kept;
        task.row = manner->row;
        if (turn == 1)
            let_settle(&task);
        estimate[r] = batch(&task, calls_for(estimate[r], manner, 1));
        round->ns[r] = less(estimate[r], empty);
    }
    if (point->bytes) {
        struct task copy = task_of(COPY, point, NULL);
        copy.row = manner->row;
        /* What a copy of so many bytes takes is known well enough to begin with. */
        round->copy = less(batch(&copy, calls_for((double)point->bytes / 5, manner, 0.25)), empty);
    }
    if (point->bytes && machine.size > 1)
        round->read = read_ns(point, manner, turn);
    round->bare = less(batch(&flags, CALLS_MOST / 2), clock);
    double after = machine_probe();
    round->flag = (before + after) / 2;
    round->state = machine_state(before, after);
}

static void make_memory(const struct point *points, int count)
{
    size_t most = 4096;

    for (int i = 0; i < count; i++)
        most = points[i].bytes > most ? points[i].bytes : most;
    most = (most + 4095) & ~(size_t)4095;
    block = most;
    /* No elements have more gaps than bytes. */
    for (int i = 0; i < 2; i++) {
        memory[i] = aligned_alloc(4096, 2 * most);
        if (!memory[i])
            fail("no memory for messages of %zu bytes", most);
        memset(memory[i], 0, 2 * most);
    }
}

static void make_blocks(void)
{
    ways = collx_copy_ways();
    blocks = shared_memory((size_t)machine.size * block, own.Bcast, own.Allreduce);
    if (!blocks)
        fail("no memory to share for messages of %zu bytes", block);
    memset(block_of(machine.rank), 0, block);
}

void measure(struct point *points, int count, const struct manner *manner)
{
    static double estimate[POINTS_MOST][ROUTES_MOST];
    uint64_t begin = collx_clock_ns();
    bool more = true;

    of = manner->of;
    make_memory(points, count);
    if (machine.size > 1)
        make_blocks();
    for (int i = 0; i < count; i++)
        for (int r = 0; r < ROUTES_MOST; r++)
            estimate[i][r] = manner->batch_us * 1000; /* one call, to begin with */
    for (int sweep = 1; more; sweep++) {
        for (int i = 0; i < count; i++) {
            uint64_t now = collx_clock_ns();
            double elapsed = (double)(now - begin) / 1e9;
            /* What takes long shall not take all the time from the others. */
            bool due = points[i].rounds < ROUNDS_LEAST ||
                       (elapsed < manner->seconds && points[i].spent < 2 * elapsed / count);
            if (!machine_agree(due))
                continue;
            one_round(&points[i], manner, estimate[i]);
            points[i].spent += (double)(collx_clock_ns() - now) / 1e9;
        }
        double elapsed = (double)(collx_clock_ns() - begin) / 1e9;
        show_progress(elapsed, manner->seconds, sweep);
        more = machine_agree(sweep < ROUNDS_LEAST || elapsed < manner->seconds);
    }
    show_progress_end();
    free(memory[0]);
    free(memory[1]);
}

/* ns of a call on a communicator of one rank, one after the other. */
static double alone(const struct task *task, int calls)
{
    uint64_t begin = machine_ticks();

    for (int i = 0; i < calls; i++)
        call(task);
    return machine_ns(machine_ticks() - begin) / calls;
}

void measure_overhead(const struct point *points, int count, const struct manner *manner)
{
    enum { BLOCKS = 201 };
    struct route routed = {.comm = MPI_COMM_SELF}, past = {.comm = MPI_COMM_SELF, .own = true};

    of = manner->of;
    make_memory(points, count);
    printf("collective     bytes      MPI ns    collx ns     adds ns  (quartiles)\n");
    for (int p = 0; p < count; p++) {
        double mpi[BLOCKS], collx[BLOCKS], gap[BLOCKS];
        struct task a = task_of(COLLECTIVE, &points[p], &past),
                    b = task_of(COLLECTIVE, &points[p], &routed);

        alone(&b, 20); /* sets the communicator up */
        int calls = (int)(manner->batch_us * 1000 / (alone(&a, 20) + 1)) + 4;
        for (int i = 0; i < BLOCKS; i++) {
            if (i % 2)
                collx[i] = alone(&b, calls);
            mpi[i] = alone(&a, calls);
            if (i % 2 == 0)
                collx[i] = alone(&b, calls);
            gap[i] = collx[i] - mpi[i];
        }
        struct collx_spread adds = collx_spread_of(gap, BLOCKS);
        printf("%-10s %9zu %11.1f %11.1f %11.1f  (%.1f to %.1f)\n", collx_kind_name(points[p].kind),
               points[p].bytes, collx_spread_of(mpi, BLOCKS).median,
               collx_spread_of(collx, BLOCKS).median, adds.median, adds.low, adds.high);
    }
    free(memory[0]);
    free(memory[1]);
}
