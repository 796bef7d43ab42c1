/* Are there more ranks than CPUs for them?  Then a waiting rank must not spin: the one that it
 * waits for may need this very CPU.
 *
 * Nobody can tell alone: each rank may be bound to a CPU of its own, or all to the same.  So the
 * ranks put the CPUs that they may use into the head of the shared segment, and count them together
 * once all have done so (the setup's agreement comes in between).
 */
#ifndef COLLX_CROWD_H
#define COLLX_CROWD_H

#include "algorithms/wait.h"

enum { COLLX_CPUS = 4096 };

/* The head of every segment. */
struct collx_crowd {
    _Alignas(COLLX_LINE) uint64_t cookie; /* whoever maps a segment sees by it that it is the one */
    uint32_t stall_said;                  /* see struct collx_team */
    _Atomic uint32_t votes;               /* ranks that know of a crowd beyond this communicator */
    _Alignas(COLLX_LINE) _Atomic uint64_t cpus[COLLX_CPUS / 64]; /* of all ranks */
};
_Static_assert(sizeof(struct collx_crowd) % COLLX_LINE == 0, "algorithms' memory starts on a line");

/* Enter this rank's CPUs.  `segment` starts with a struct collx_crowd. */
void collx_crowd_join(void *segment);

/* Set how the team waits.  After all have joined; `segment` NULL: there is none.  `ranks`: of the
 * communicator, on one node. */
void collx_crowd_decide(void *segment, int ranks, struct collx_team *team);

#endif
