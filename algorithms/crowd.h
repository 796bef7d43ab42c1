/* Are there more ranks than CPUs for them?  Then a waiting rank must not spin: the one that it
 * waits for may need this very CPU, or the CPU time that a cgroup gives to both.
 *
 * Nobody can tell alone: each rank may be bound to a CPU of its own, or all to the same; they may
 * be in one cgroup, or each in its own.  So the ranks enter what they know into the head of the
 * shared segment, and count it together once all have done so (the setup's agreement comes in
 * between).  All see the same numbers then, and decide alike; they have to, for whoever posts a
 * flag looks for sleepers only in a crowd.  A rank that could not find out something enters
 * nothing of it, which all others see as well.
 */
#ifndef COLLX_CROWD_H
#define COLLX_CROWD_H

#include "algorithms/wait.h"
#include "hw/cpus.h"

enum { COLLX_CPUS = 4096, COLLX_CROWD_GROUPS = 64, COLLX_CROWD_SEEN = 64 };

/* A cgroup with a quota, in which some of the ranks are. */
struct collx_crowd_group {
    _Atomic uint64_t id; /* collx_cpu_limit.group; 0: this and all that follow are unused */
    _Atomic int64_t millicpus;
    _Atomic uint32_t ranks;
};

/* The head of every segment. */
struct collx_crowd {
    _Alignas(COLLX_LINE) uint64_t cookie; /* whoever maps a segment sees by it that it is the one */
    uint32_t users;         /* see hw/spares.h; what follows is cleared for new ones */
    uint32_t stall_said;    /* see struct collx_team */
    _Atomic uint32_t votes; /* ranks that know of a crowd beyond this communicator */
    _Alignas(COLLX_LINE) _Atomic uint64_t cpus[COLLX_CPUS / 64]; /* of all ranks */
    _Alignas(COLLX_LINE) struct collx_crowd_group groups[COLLX_CROWD_GROUPS];
    _Alignas(COLLX_LINE) int32_t seen[COLLX_CROWD_SEEN]; /* see struct collx_team */
    _Alignas(COLLX_LINE) int32_t pid[COLLX_CROWD_SEEN];  /* likewise */
};
_Static_assert(sizeof(struct collx_crowd_group) == 24 &&
                   offsetof(struct collx_crowd, groups) == 5 * COLLX_LINE &&
                   offsetof(struct collx_crowd, seen) == 17 * COLLX_LINE &&
                   offsetof(struct collx_crowd, pid) == 19 * COLLX_LINE,
               "all ranks see the same layout");
_Static_assert(sizeof(struct collx_crowd) % COLLX_LINE == 0, "algorithms' memory starts on a line");

/* Whether this process can tell by itself that there are more ranks of its job on this node than
 * CPUs, or CPU time, for them.  false: there are not, or it takes the others to know. */
bool collx_crowd_foreseen(void);

/* Enter what this rank of the team knows.  `segment` starts with a struct collx_crowd. */
void collx_crowd_join(void *segment, int rank);

/* A number for what this rank would enter now: another one where its CPUs are others. */
uint64_t collx_crowd_own(void);

/* Enter one limit of one rank. */
void collx_crowd_limit(void *segment, const struct collx_cpu_limit *limit);

/* Set how the team waits.  After all have joined; `segment` NULL: there is none.  `ranks`: of the
 * communicator, on one node. */
void collx_crowd_decide(void *segment, int ranks, struct collx_team *team);

/* Say what was decided, and why: "4 ranks on 2 CPUs: …".  Returns `text`. */
char *collx_crowd_explain(void *segment, int ranks, const struct collx_team *team, char *text,
                          size_t size);

#endif
