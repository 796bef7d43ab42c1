#include "pmpi/crowd.h"

#include "base/options.h"

#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

/* Spins before the first yield, where every rank has a CPU: some 50 us, many times what a rank that
 * is on its way takes, and less than what an MPI library's own busy waiting costs. */
enum { SPINS = 2000 };

/* Ranks of this job on this node, as its launcher tells; 0: it does not. */
static int local_ranks(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS",
                                        "PALS_LOCAL_SIZE", "SLURM_STEP_TASKS_PER_NODE"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        if (value && atoi(value) > 0)
            return atoi(value);
    }
    return 0;
}

void collx_crowd_join(void *segment)
{
    struct collx_crowd *crowd = segment;
    cpu_set_t set;

    if (sched_getaffinity(0, sizeof set, &set))
        return;
    for (int cpu = 0; cpu < COLLX_CPUS && cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &set))
            atomic_fetch_or_explicit(&crowd->cpus[cpu / 64], (uint64_t)1 << cpu % 64,
                                     memory_order_relaxed);
    /* Ranks that are not bound share all CPUs with the whole job, not only with this communicator.
     */
    if (CPU_COUNT(&set) == sysconf(_SC_NPROCESSORS_ONLN) && local_ranks() > CPU_COUNT(&set))
        atomic_fetch_add_explicit(&crowd->votes, 1, memory_order_relaxed);
}

void collx_crowd_decide(void *segment, int ranks, struct collx_team *team)
{
    struct collx_crowd *crowd = segment;
    int64_t wanted = collx_option_number(COLLX_OPTION_SPIN);
    int cpus = 0;

    for (int i = 0; crowd && i < COLLX_CPUS / 64; i++)
        cpus += __builtin_popcountll(crowd->cpus[i]);
    team->crowded = crowd && (ranks > cpus || crowd->votes);
    team->spins = wanted >= 0 ? (int)wanted : team->crowded ? 0 : SPINS;
    team->stall_ms = (int)collx_option_number(COLLX_OPTION_STALL);
}
