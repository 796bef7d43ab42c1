/* How much of the machine's CPU time the kernel lets a process have: the quotas of its cgroups.
 *
 * A quota is CPU time per period, over all CPUs.  Who has used it up stands still until the period
 * ends, which is a tenth of a second as a rule; so a rank that spins may stop all others.  (Which
 * CPUs a process may run on, cpusets included, is told by its affinity mask.)
 */
#ifndef COLLX_CPUS_H
#define COLLX_CPUS_H

#include <stddef.h>
#include <stdint.h>

/* A cgroup that this process is in and that has a quota.  All processes in it share the quota. */
struct collx_cpu_limit {
    uint64_t group;    /* equal for two processes if they are in the same cgroup; never 0 */
    int64_t millicpus; /* 2500: the time of two CPUs and a half; over 0 */
};

/* Finds the limits of process `pid` (0: this one), at most `room` of them: those of the cgroups
 * that it is in and of all cgroups above, as far as they can be seen from here.  `root` stands
 * before every path that is read: "", or a test's folder.  Returns their number.  What is absent,
 * unreadable or nonsense is no limit.  Keeps errno. */
int collx_cpus_limits(const char *root, int pid, struct collx_cpu_limit *limits, int room);

/* "2", "0.5": in CPUs.  Returns `text`, for which 24 bytes are enough. */
char *collx_cpus_format(int64_t millicpus, char *text, size_t size);

#endif
