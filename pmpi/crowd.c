#include "pmpi/crowd.h"

#include "base/launcher.h"
#include "base/options.h"

#include <sched.h>
#include <unistd.h>

/* Spins before the first yield, where every rank has a CPU: some 50 us, many times what a rank that
 * is on its way takes, and less than what an MPI library's own busy waiting costs. */
enum { SPINS = 2000 };

void collx_crowd_join(void *segment)
{
    struct collx_crowd *crowd = segment;
    unsigned long set[COLLX_CPUS / (8 * sizeof(unsigned long))] = {0};
    const int bits = 8 * sizeof *set;
    int own = 0;

    /* Fails on a machine with still more CPUs: then nobody knows, and nobody is a crowd. */
    if (sched_getaffinity(0, sizeof set, (cpu_set_t *)set))
        return;
    for (int cpu = 0; cpu < COLLX_CPUS; cpu++) {
        if (!(set[cpu / bits] >> cpu % bits & 1))
            continue;
        own++;
        atomic_fetch_or_explicit(&crowd->cpus[cpu / 64], (uint64_t)1 << cpu % 64,
                                 memory_order_relaxed);
    }
    /* Ranks that are not bound share all CPUs with the whole job, not only with this communicator.
     */
    if (own == sysconf(_SC_NPROCESSORS_ONLN) && collx_launcher_local_ranks() > own)
        atomic_fetch_add_explicit(&crowd->votes, 1, memory_order_relaxed);
}

void collx_crowd_decide(void *segment, int ranks, struct collx_team *team)
{
    struct collx_crowd *crowd = segment;
    int64_t wanted = collx_option_number(COLLX_OPTION_SPIN);
    int cpus = 0;

    for (int i = 0; crowd && i < COLLX_CPUS / 64; i++)
        cpus += __builtin_popcountll(crowd->cpus[i]);
    team->crowded = cpus && (ranks > cpus || crowd->votes);
    team->stall_said = crowd ? &crowd->stall_said : NULL;
    team->spins = wanted >= 0 ? (int)wanted : team->crowded ? 0 : SPINS;
    team->stall_ms = (int)collx_option_number(COLLX_OPTION_STALL);
}
