/* The ranks' shared memory, their common start, the time, and the state of the machine. */
#include "bench/bench.h"

#include "algorithms/wait.h"
#include "base/clock.h"
#include "bench/shared.h"

#include <limits.h>
#include <linux/futex.h>
#include <math.h>
#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LINE = 64, BATCHES = 9, TRIPS = 40 };

struct line {
    alignas(LINE) _Atomic uint64_t value;
    _Atomic uint32_t claimed; /* collx_flag_claim() */
};

/* In shared memory; a value is written by one rank alone. */
struct shared {
    struct line start, agreed, bell;
    struct line flag[2];
    struct {
        struct line here, flag[2]; /* flags take turns */
        double end[CALLS_MOST];
        cpu_set_t cpus;
    } of[];
};

struct machine machine;
static struct shared *shared;
static uint64_t met;
static double ns_per_tick = 1;
static bool use_counter;
static uint64_t margin; /* ticks from the word to start to the start */
static int probe_cpu[2] = {-1, -1};

/* Release: pairs with the acquire in wait_for; what a rank wrote before it came is seen by whoever
 * saw it come. */
static void post(struct line *line, uint64_t value)
{
    atomic_store_explicit(&line->value, value, memory_order_release);
}

/* A poll that meets the line on its way costs a trip of its own; it is not what is measured. */
static void relax(void)
{
    for (int i = collx_pauses_per_poll(); i > 0; i--)
        collx_pause();
}

static void wait_for(struct line *line, uint64_t value)
{
    /* Acquire: pairs with the release in post. */
    while (atomic_load_explicit(&line->value, memory_order_acquire) < value)
        machine.crowded ? (void)sched_yield() : relax();
}

uint64_t machine_ticks(void)
{
#if defined(__x86_64__)
    unsigned cpu;

    if (use_counter)
        return __builtin_ia32_rdtscp(&cpu);
#endif
    return collx_clock_ns();
}

double machine_ns(uint64_t ticks)
{
    return (double)ticks * ns_per_tick;
}

void machine_meet(void)
{
    met++;
    post(&shared->of[machine.rank].here, met);
    for (int i = 0; i < machine.size; i++)
        wait_for(&shared->of[i].here, met);
}

/* As fast as can be: the next one's line is claimed ahead, which the others do not look at yet. */
void machine_exchange(void)
{
    static uint64_t exchanged;
    unsigned turn = ++exchanged & 1;

    post(&shared->of[machine.rank].flag[turn], exchanged);
    for (int i = 0; i < machine.size; i++)
        if (i != machine.rank)
            wait_for(&shared->of[i].flag[turn], exchanged);
    if (!machine.crowded)
        collx_flag_claim(&shared->of[machine.rank].flag[!turn].claimed);
}

uint64_t machine_start(bool *late)
{
    static uint64_t last;

    met++;
    post(&shared->of[machine.rank].here, met);
    if (machine.rank == 0) {
        for (int i = 1; i < machine.size; i++)
            wait_for(&shared->of[i].here, met);
        post(&shared->start, machine_ticks() + margin);
    }
    wait_for(&shared->start, last + 1);
    last = atomic_load_explicit(&shared->start.value, memory_order_relaxed);
    *late = !machine.crowded && machine_ticks() >= last;
    while (machine_ticks() < last)
        ;
    return last;
}

uint64_t machine_agree(uint64_t value)
{
    machine_meet();
    if (machine.rank == 0)
        post(&shared->agreed, value);
    machine_meet();
    return atomic_load_explicit(&shared->agreed.value, memory_order_relaxed);
}

/* Of call `c`. */
static double slowest(int c)
{
    double most = 0;

    for (int i = 0; i < machine.size; i++) {
        double end = shared->of[i].end[c];
        if (end < 0)
            return -1;
        most = fmax(most, end);
    }
    return most;
}

int machine_slowest(const double *end, int calls, double *times)
{
    int good = 0;

    memcpy(shared->of[machine.rank].end, end, (size_t)calls * sizeof *end);
    machine_meet();
    for (int c = 0; machine.rank == 0 && c < calls; c++) {
        times[good] = slowest(c);
        good += times[good] >= 0;
    }
    machine_meet();
    return good;
}

/* There and back, in ns. */
static double round_trip(void)
{
    static uint64_t trip;
    struct line *theirs = &shared->flag[!machine.rank];
    uint64_t begin = machine_ticks();

    for (int i = 0; i < TRIPS; i++) {
        trip++;
        if (machine.rank == 0)
            post(&shared->flag[0], trip);
        /* Acquire: pairs with the release in post. */
        while (atomic_load_explicit(&theirs->value, memory_order_acquire) < trip)
            relax();
        if (machine.rank == 1)
            post(&shared->flag[1], trip);
    }
    return machine_ns(machine_ticks() - begin) / TRIPS;
}

static uint32_t *futex_of(struct line *bell)
{
    return (uint32_t *)&bell->value + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
}

/* The others sleep, so that two CPUs are free for two ranks. */
static void sleep_until(struct line *bell, uint64_t value)
{
    uint64_t seen;

    /* Acquire: pairs with the release in post. */
    while ((seen = atomic_load_explicit(&bell->value, memory_order_acquire)) < value)
        syscall(SYS_futex, futex_of(bell), FUTEX_WAIT, (uint32_t)seen, NULL, NULL, 0);
}

static void ring(struct line *bell, uint64_t value)
{
    post(bell, value);
    syscall(SYS_futex, futex_of(bell), FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

double machine_probe(void)
{
    double trip[BATCHES] = {0};
    cpu_set_t one, *all = &shared->of[machine.rank].cpus;

    if (machine.size < 2 || probe_cpu[0] < 0)
        return 0;
    machine_meet();
    if (machine.rank < 2) {
        if (machine.crowded) {
            /* The two may be on one CPU at the moment, and would be measured taking turns. */
            CPU_ZERO(&one);
            CPU_SET(probe_cpu[machine.rank], &one);
            sched_setaffinity(0, sizeof one, &one);
        }
        for (int i = 0; i < BATCHES; i++)
            trip[i] = round_trip();
        if (machine.crowded)
            sched_setaffinity(0, sizeof *all, all);
        if (machine.rank == 0)
            ring(&shared->bell, met);
    } else if (machine.crowded) {
        sleep_until(&shared->bell, met);
    }
    machine_meet();
    return collx_spread_of(trip, BATCHES).median / 2;
}

/* Where the machines of our measurements stand most of the time.  No caches are further apart than
 * 2 us, and a rank that answers later was not on its CPU. */
static const struct {
    const char *name;
    double to; /* ns, one way */
} states[STATES] = {
    [STATE_NEAR] = {"near", 90},
    [STATE_MIDDLE] = {"middle", 170},
    [STATE_FAR] = {"far", 2000},
};

static enum state state_at(double flag_ns)
{
    for (int i = 0; i < STATES; i++)
        if (flag_ns <= states[i].to)
            return (enum state)i;
    return STATE_NONE;
}

enum state machine_state(double before, double after)
{
    /* A machine on its way from one to another, or disturbed. */
    if (fabs(before - after) > 0.2 * (before + after))
        return STATE_NONE;
    /* 0: nothing to tell them by; all the same. */
    return state_at((before + after) / 2);
}

const char *machine_state_name(enum state state)
{
    return machine.size < 2 || probe_cpu[0] < 0 ? "any" : states[state].name;
}

/* Whether the kernel itself takes the processors' counters for one clock. */
static bool counter_is_clock(void)
{
#if defined(__x86_64__)
    char name[16] = "";
    FILE *file = fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "re");

    if (!file)
        return false;
    bool tsc = fgets(name, sizeof name, file) && !strcmp(name, "tsc\n");
    fclose(file);
    return tsc;
#else
    return false;
#endif
}

static void calibrate(void)
{
    use_counter = counter_is_clock();
    if (use_counter) {
        uint64_t ns = collx_clock_ns(), ticks = machine_ticks();
        while (collx_clock_ns() - ns < 20000000)
            ;
        ns_per_tick = (double)(collx_clock_ns() - ns) / (double)(machine_ticks() - ticks);
    }
    /* All convert alike. */
    ns_per_tick = (double)machine_agree((uint64_t)(ns_per_tick * 1e6)) / 1e6;
}

static void count_cpus(void)
{
    cpu_set_t all;

    CPU_ZERO(&all);
    for (int i = 0; i < machine.size; i++)
        CPU_OR(&all, &all, &shared->of[i].cpus);
    machine.cpus = CPU_COUNT(&all);
    machine.crowded = machine.size > machine.cpus;
    for (int a = 0; machine.size > 1 && a < CPU_SETSIZE; a++)
        for (int b = 0; probe_cpu[0] < 0 && b < CPU_SETSIZE; b++)
            if (a != b && CPU_ISSET(a, &shared->of[0].cpus) && CPU_ISSET(b, &shared->of[1].cpus)) {
                probe_cpu[0] = a;
                probe_cpu[1] = b;
            }
}

void machine_init(void)
{
    MPI_Comm_rank(MPI_COMM_WORLD, &machine.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &machine.size);
    shared = shared_memory(sizeof *shared + (size_t)machine.size * sizeof shared->of[0], own.Bcast,
                           own.Allreduce);
    if (!shared)
        fail("the ranks are on several nodes, and their clocks differ, or they find no memory to "
             "share; start all on one");

    sched_getaffinity(0, sizeof(cpu_set_t), &shared->of[machine.rank].cpus);
    machine.crowded = true; /* until it is known */
    machine_meet();
    count_cpus();
    machine_meet();
    calibrate();
    /* Time for the word to reach everybody: several lines' way, more with more ranks. */
    margin = machine.crowded ? 0 : (uint64_t)((1000 + 100 * machine.size) / ns_per_tick);
}
