/* Communicators that are made, used for some calls and freed: what a program has of collx that
 * makes them again and again, with the time that collx needs to get to know each of them. */
#include "bench/bench.h"

#include "base/clock.h"

#include <stdlib.h>

enum { ROUNDS_LEAST = 3, ROUNDS_MOST = 512, LIVES_AT_ONCE = 64 };

/* Rounds in one state, in ns a life. */
struct lives {
    int rounds;
    double mpi[ROUNDS_MOST], collx[ROUNDS_MOST], ratio[ROUNDS_MOST];
};

struct life {
    const struct point *point;
    int calls;     /* on each communicator */
    double spent;  /* s */
    double before; /* ns a life took the last time, of the two ways together */
    int rounds;    /* also of those that were dropped */
    struct lives in[STATES];
};

/* Sent, and received by an Allreduce. */
static char *data, *result;

static bool adds_doubles(const struct life *life)
{
    return life->point->bytes % sizeof(double) == 0;
}

static void call(const struct life *life, MPI_Comm comm, const struct own *way, int i)
{
    const int bytes = (int)life->point->bytes, root = i % machine.size;

    if (life->point->kind == COLLX_BCAST && machine.rank == root)
        *data = (char)i;
    if (life->point->kind == COLLX_BARRIER)
        way->Barrier(comm);
    else if (life->point->kind == COLLX_BCAST)
        way->Bcast(data, bytes, MPI_BYTE, root, comm);
    else if (adds_doubles(life))
        way->Allreduce(data, result, bytes / (int)sizeof(double), MPI_DOUBLE, MPI_SUM, comm);
    else
        way->Allreduce(data, result, bytes, MPI_SIGNED_CHAR, MPI_SUM, comm);
}

/* A figure for a wrong result is worth nothing. */
static void check(const struct life *life)
{
    bool right = true;

    if (life->point->kind == COLLX_BCAST)
        right = *data == (char)(life->calls - 1);
    else if (life->point->kind == COLLX_ALLREDUCE)
        right =
            adds_doubles(life) ? *(double *)result == machine.size : *result == (char)machine.size;
    if (!right)
        fail("%s of %zu bytes on rank %d, the last of %d on a communicator, has a wrong result",
             collx_kind_name(life->point->kind), life->point->bytes, machine.rank, life->calls);
}

/* What check() expects does not come about by itself. */
static void prepare(const struct life *life)
{
    if (life->point->kind == COLLX_BCAST)
        *data = (char)life->calls;
    else if (adds_doubles(life))
        *(double *)data = 1, *(double *)result = 0;
    else
        *data = 1, *result = 0;
}

static void live(const struct life *life, const struct own *way)
{
    MPI_Comm comm;

    way->Comm_dup(MPI_COMM_WORLD, &comm);
    for (int i = 0; i < life->calls; i++)
        call(life, comm, way, i);
    way->Comm_free(&comm);
}

/* ns a life on the slowest rank, on rank 0; < 0: a rank was late. */
static double batch(const struct life *life, const struct own *way, int count)
{
    double end, time;
    bool late;

    prepare(life);
    /* Each point stands for a program of its own, in which the one before was as long as this; here
     * it was of another point. */
    live(life, way);
    const uint64_t start = machine_start(&late);
    for (int i = 0; i < count; i++)
        live(life, way);
    end = late ? -1 : machine_ns(machine_ticks() - start);
    check(life);
    return machine_slowest(&end, 1, &time) ? time / count : -1;
}

static void one_round(struct life *life, const struct manner *manner)
{
    const double before = machine_probe();
    const double fit = manner->batch_us * 2000 / (life->before + 1);
    const int count = (int)machine_agree(fit < 1               ? 1
                                         : fit > LIVES_AT_ONCE ? LIVES_AT_ONCE
                                                               : (uint64_t)fit);
    double ns[2]; /* collx, own */

    /* Who goes first changes, lest one always finds the caches as the other left them. */
    for (int i = 0; i < 2; i++) {
        const bool own_way = (life->rounds + i) % 2;
        ns[own_way] = batch(life, own_way ? &own : &through, count);
    }
    const enum state state = machine_state(before, machine_probe());
    if (ns[0] > 0 && ns[1] > 0)
        life->before = ns[0] + ns[1];
    /* The first one has the pages that both touch for the first time, and is one life long. */
    if (life->rounds++ == 0 || machine.rank || state == STATE_NONE || ns[0] <= 0 || ns[1] <= 0)
        return;
    struct lives *in = &life->in[state];
    if (in->rounds == ROUNDS_MOST)
        return;
    in->mpi[in->rounds] = ns[1];
    in->collx[in->rounds] = ns[0];
    in->ratio[in->rounds++] = ns[1] / ns[0];
}

static void print_state(struct life *lives, int count, enum state state)
{
    bool any = false;

    for (int i = 0; i < count; i++)
        any = any || lives[i].in[state].rounds;
    if (!any)
        return;
    printf("\n%s\n\nus a life    bytes    calls |       mpi   +- |     collx   +-   ratio       "
           "(quartiles) | rounds\n",
           machine_state_name(state));
    for (int i = 0; i < count; i++) {
        struct lives *in = &lives[i].in[state];
        if (!in->rounds)
            continue;
        const struct collx_spread mpi = collx_spread_of(in->mpi, in->rounds),
                                  collx = collx_spread_of(in->collx, in->rounds),
                                  ratio = collx_spread_of(in->ratio, in->rounds);
        printf("%-9s %8zu %8d |%10.1f %3.0f%% |%10.1f %3.0f%% %7.2fx (%6.2f,%7.2f) | %6d\n",
               collx_kind_name(lives[i].point->kind), lives[i].point->bytes, lives[i].calls,
               mpi.median / 1e3, 50 * (mpi.high - mpi.low) / mpi.median, collx.median / 1e3,
               50 * (collx.high - collx.low) / collx.median, ratio.median, ratio.low, ratio.high,
               in->rounds);
    }
}

void measure_lives(const struct point *points, int count, const int *calls, int calls_count,
                   const struct manner *manner)
{
    const int all = count * calls_count;
    bool more = true;
    struct life *lives = calloc((size_t)all, sizeof *lives);
    const uint64_t begin = collx_clock_ns();
    size_t most = sizeof(double);

    for (int i = 0; i < count; i++)
        most = points[i].bytes > most ? points[i].bytes : most;
    data = calloc(1, most);
    result = calloc(1, most);
    if (!lives || !data || !result)
        fail("out of memory");
    for (int i = 0; i < all; i++) {
        lives[i].point = &points[i / calls_count];
        lives[i].calls = calls[i % calls_count];
        lives[i].before = manner->batch_us * 2000;
    }
    for (int sweep = 0; more; sweep++) {
        for (int i = 0; i < all; i++) {
            const uint64_t now = collx_clock_ns();
            const double elapsed = (double)(now - begin) / 1e9;
            /* What takes long shall not take all the time from the others. */
            if (!machine_agree(sweep <= ROUNDS_LEAST || lives[i].spent < 2 * elapsed / all))
                continue;
            one_round(&lives[i], manner);
            lives[i].spent += (double)(collx_clock_ns() - now) / 1e9;
        }
        const double elapsed = (double)(collx_clock_ns() - begin) / 1e9;
        show_progress(elapsed, manner->seconds, sweep + 1);
        more = machine_agree(sweep < ROUNDS_LEAST || elapsed < manner->seconds);
    }
    show_progress_end();
    for (int state = 0; state < STATES && machine.rank == 0; state++)
        print_state(lives, all, (enum state)state);
    if (machine.rank == 0)
        printf(
            "\na life: MPI_Comm_dup, so many calls, MPI_Comm_free, after another one that was as "
            "long. ratio: the\nMPI library's time by collx's, round by round. +-: half of what "
            "lies "
            "between the quartiles.\n");
    free(lives);
    free(data);
    free(result);
}
