#include "algorithms/crowd.h"

#include "base/hash.h"
#include "base/launcher.h"
#include "base/options.h"

#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Spins before the first yield, where every rank has a CPU: some 50 us, many times what a rank that
 * is on its way takes, and less than what an MPI library's own busy waiting costs. */
enum { SPINS = 2000 };

/* Ranks for each CPU up to which it helps to know on which one each was last seen, by measurement
 * of up to so many; and where the job has ranks that the communicator has not, which nobody sees:
 * one of those may have use for the CPU. */
enum { SEEN_MOST = 4, SEEN_MOST_OF_MORE = 2 };

enum { LIMITS = 16 };

/* The quotas of this process's cgroups, and the machine's CPUs.  Found once: a machine may have
 * thousands of mounts, and a job thousands of communicators. */
static struct {
    struct collx_cpu_limit limit[LIMITS];
    int count;
    bool short_for_job; /* one of them is too small for all ranks of the job on this node */
    long cpus;          /* online */
} own;
static pthread_once_t found = PTHREAD_ONCE_INIT;

/* This process is one of more ranks than CPUs.  A communicator with some of these ranks alone has
 * a crowd around it all the same. */
static atomic_bool in_crowd;

static void find(void)
{
    struct collx_cpu_limit launcher[LIMITS];
    const pid_t parent = getppid();
    /* 0: it is outside of the container that this rank is in, alone. */
    int count = parent ? collx_cpus_limits("", parent, launcher, LIMITS) : 0;
    int64_t ranks = collx_launcher_local_ranks();

    own.cpus = sysconf(_SC_NPROCESSORS_ONLN);
    own.count = collx_cpus_limits("", 0, own.limit, LIMITS);
    /* A cgroup that the launcher is in as well holds all ranks that it has started. */
    for (int i = 0; i < own.count; i++)
        for (int j = 0; j < count; j++)
            if (own.limit[i].group == launcher[j].group && ranks * 1000 > own.limit[i].millicpus)
                own.short_for_job = true;
}

void collx_crowd_limit(void *segment, const struct collx_cpu_limit *limit)
{
    struct collx_crowd *crowd = segment;

    /* In a full table a limit goes unnoticed, by all: so many cgroups have one rank or two each. */
    for (int i = 0; i < COLLX_CROWD_GROUPS; i++) {
        struct collx_crowd_group *group = &crowd->groups[i];
        uint64_t id = 0;

        if (!atomic_compare_exchange_strong_explicit(&group->id, &id, limit->group,
                                                     memory_order_relaxed, memory_order_relaxed) &&
            id != limit->group)
            continue;
        atomic_store_explicit(&group->millicpus, limit->millicpus, memory_order_relaxed);
        atomic_fetch_add_explicit(&group->ranks, 1, memory_order_relaxed);
        return;
    }
}

/* The CPUs that this process may use, and how many they are. */
static int own_cpus(uint64_t mask[COLLX_CPUS / 64])
{
    const size_t size = COLLX_CPUS / 8;

    memset(mask, 0, size);
    /* Fails on a machine with still more CPUs: then nobody counts this rank's. */
    return sched_getaffinity(0, size, (cpu_set_t *)mask) ? 0 : CPU_COUNT_S(size, (cpu_set_t *)mask);
}

/* After find(), of a process that may use so many CPUs. */
static bool foreseen(int cpus)
{
    /* Ranks that are not bound share all CPUs with the whole job. */
    return own.short_for_job || (cpus == own.cpus && collx_launcher_local_ranks() > cpus);
}

bool collx_crowd_foreseen(void)
{
    uint64_t mask[COLLX_CPUS / 64];

    pthread_once(&found, find);
    return foreseen(own_cpus(mask));
}

uint64_t collx_crowd_own(void)
{
    uint64_t mask[COLLX_CPUS / 64], hash = COLLX_HASH_START;

    own_cpus(mask);
    hash += atomic_load_explicit(&in_crowd, memory_order_relaxed);
    for (int i = 0; i < COLLX_CPUS / 64; i++)
        if (mask[i]) {
            const uint64_t part[] = {(uint64_t)i, mask[i]};
            hash = collx_hash(hash, part, sizeof part);
        }
    return hash;
}

void collx_crowd_join(void *segment, int rank)
{
    struct collx_crowd *crowd = segment;
    uint64_t mask[COLLX_CPUS / 64];
    const int cpus = own_cpus(mask);

    pthread_once(&found, find);
    for (int i = 0; i < own.count; i++)
        collx_crowd_limit(segment, &own.limit[i]);
    for (int i = 0; i < COLLX_CPUS / 64; i++)
        if (mask[i])
            atomic_fetch_or_explicit(&crowd->cpus[i], mask[i], memory_order_relaxed);
    if (foreseen(cpus) || atomic_load_explicit(&in_crowd, memory_order_relaxed))
        atomic_fetch_add_explicit(&crowd->votes, 1, memory_order_relaxed);
    if (rank < COLLX_CROWD_SEEN)
        crowd->pid[rank] = getpid();
}

/* CPUs that any of the ranks may use; 0: unknown. */
static int count_cpus(const struct collx_crowd *crowd)
{
    int cpus = 0;

    for (int i = 0; i < COLLX_CPUS / 64; i++)
        cpus += __builtin_popcountll(crowd->cpus[i]);
    return cpus;
}

/* A cgroup that has less CPU time than its ranks take when all of them run, or NULL. */
static const struct collx_crowd_group *find_short(const struct collx_crowd *crowd)
{
    for (int i = 0; i < COLLX_CROWD_GROUPS && crowd->groups[i].id; i++)
        if ((int64_t)crowd->groups[i].ranks * 1000 > crowd->groups[i].millicpus)
            return &crowd->groups[i];
    return NULL;
}

/* Whether it helps ranks on `cpus` CPUs to know where the others are.  Not where each may have a
 * CPU of its own, nor on a single one; nor for ranks of other nodes, which are not seen.  Nor where
 * they are many: to find one that is missing may take as many loads as the square of that, during
 * which nobody sees who comes. */
static bool looks(int cpus, int ranks, const struct collx_team *team)
{
    const int job = collx_launcher_local_ranks();

    return ranks == team->size && ranks <= COLLX_CROWD_SEEN && cpus > 1 && ranks > cpus &&
           (job > ranks ? job <= SEEN_MOST_OF_MORE * cpus : ranks <= SEEN_MOST * cpus);
}

void collx_crowd_decide(void *segment, int ranks, struct collx_team *team)
{
    struct collx_crowd *crowd = segment;
    int64_t wanted = collx_option_number(COLLX_OPTION_SPIN);

    team->crowded = team->rationed = false;
    team->seen = NULL;
    if (crowd) {
        int cpus = count_cpus(crowd);
        bool is_short = find_short(crowd);
        bool too_many = (cpus && ranks > cpus) || is_short;
        if (too_many)
            atomic_store_explicit(&in_crowd, true, memory_order_relaxed);
        team->crowded = too_many || crowd->votes;
        team->rationed = is_short || own.short_for_job;
        if (wanted < 0 && looks(cpus, ranks, team))
            team->seen = crowd->seen;
    }
    team->stall_said = crowd ? &crowd->stall_said : NULL;
    team->pid = crowd ? crowd->pid : NULL;
    team->pids = crowd ? COLLX_CROWD_SEEN : 0;
    team->spins = wanted >= 0 ? (int)wanted : team->crowded ? 0 : SPINS;
    team->pauses = collx_pauses_per_poll();
    team->stall_ms = (int)collx_option_number(COLLX_OPTION_STALL);
}

char *collx_crowd_explain(void *segment, int ranks, const struct collx_team *team, char *text,
                          size_t size)
{
    const struct collx_crowd *crowd = segment;
    const struct collx_crowd_group *group = find_short(crowd);
    int cpus = count_cpus(crowd);
    char many[24] = "an unknown number of", why[96] = "", how[64] = "at once", time[24];

    if (cpus)
        snprintf(many, sizeof many, "%d", cpus);
    if (group)
        snprintf(why, sizeof why, ", and a cgroup gives %" PRIu32 " of them the time of %s",
                 group->ranks, collx_cpus_format(group->millicpus, time, sizeof time));
    else if (team->crowded && ranks <= cpus)
        snprintf(why, sizeof why, ", with others beside them");
    if (team->seen)
        snprintf(how, sizeof how, "at once to ranks on its CPU");
    else if (team->spins)
        snprintf(how, sizeof how, "after %d polls", team->spins);
    snprintf(text, size, "%d rank%s on %s CPU%s%s: who waits yields %s", ranks,
             ranks == 1 ? "" : "s", many, cpus == 1 ? "" : "s", why, how);
    return text;
}
