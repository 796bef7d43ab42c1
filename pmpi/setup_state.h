/* One setup of a communicator, while it lasts, and what is said about it.  For setup*.c, and
 * pmpi/kept.c, which takes routes down like these. */
#ifndef COLLX_SETUP_STATE_H
#define COLLX_SETUP_STATE_H

#include "pmpi/segment.h"
#include "pmpi/select.h"
#include "pmpi/setup.h"
#include "pmpi/where.h"
#include "policies/policy.h"

#include <errno.h>

/* A piece of work that the plan asks for: an algorithm with its parameters. */
struct collx_wanted {
    int algorithm; /* index into collx_algorithms */
    struct collx_args args;
    size_t offset, space; /* of its piece of the segment; no space: it has none */
};

enum { COLLX_WANTED = COLLX_CANDIDATES * COLLX_ROUTED * COLLX_CHOICES };

/* One setup, while it lasts. */
struct collx_setup {
    struct collx_comm *comm;
    const struct collx_policy *policy;
    struct collx_policy received;            /* from rank 0 */
    struct collx_where *where;               /* [size] */
    struct collx_place *places;              /* [size] */
    struct collx_member *members;            /* [size], to work in */
    int *node;                               /* [size] */
    struct collx_segment_address *addresses; /* [size], of leaders */
    struct collx_choice choice[COLLX_ROUTED][COLLX_CHOICES];
    int count[COLLX_ROUTED];
    struct collx_wanted wanted[COLLX_WANTED];
    size_t wanted_count;
    struct collx_refused refused;
    uint64_t too_large; /* of those, what was refused for its memory */
    bool has_told;      /* of the segments that it had: no more of those */
};

/* In `refused.algorithms`, beside bit i for collx_algorithms[i]: no memory for the choices
 * themselves. */
#define COLLX_REFUSED_ALL ((uint64_t)1 << 63)

/* setup_plan.c.  3: the choices of each collective, and what they want, each piece once, and where
 * it lies.  Returns the size of the segment for all of that; 0: they need none.  Local, and the
 * same on all ranks. */
size_t collx_setup_plan(struct collx_setup *setup);
/* 5: some of what wants memory is refused, and no longer part of the next plan.  `errors`: what
 * kept any of the ranks from the segment, as below.  For a limit of ours one goes at a time. */
void collx_setup_refuse(struct collx_setup *setup, uint64_t errors);
/* The bit, as below, of what kept this rank from it: a negative errno, COLLX_EGONE, or 0. */
uint64_t collx_setup_limit(int failed);

/* setup_attach.c.  4, first half: the segment, of `size` bytes.  *failed: a negative errno where
 * this rank has none, or COLLX_EGONE where it would have one the next time.  Collective.  0 or an
 * MPI error. */
int collx_setup_map(struct collx_setup *setup, size_t size, int *failed);
/* 4, second half: what cannot be attached is refused, but for want of a segment only by all. */
void collx_setup_attach(struct collx_setup *setup);
/* 5, second half: what is attached everywhere is connected, and refused if that fails anywhere;
 * then *again.  Collective.  0 or an MPI error. */
int collx_setup_connect(struct collx_setup *setup, bool *again);
/* The opposite, of all that is attached; the segment stays. */
void collx_setup_detach(struct collx_routes *routes);

/* What kept a rank from the segment, one bit each: bit e for errno e up to 62.  Two limits are
 * ours, and no errors of the system; a segment that is another one than was told of, ESTALE, has
 * the bit of an error that memory does not give. */
enum {
    COLLX_LIMIT_NODE = 0,
    COLLX_LIMIT_COMM = E2BIG,
    COLLX_LIMIT_STALE = ECHILD,
    COLLX_LIMIT_ERRORS = 63,
};
#define COLLX_LIMIT_GONE ((uint64_t)1 << COLLX_LIMIT_ERRORS)

/* For COLLX_VERBOSE: that collx is here, and why no more is said yet, of a program that may be too
 * short for it.  `calls`: so many come before. */
void collx_setup_report_begin(const struct collx_policy *policy, uint64_t calls);

/* Rank 0 says for all why there is no memory to share, of `size` bytes; `errors`: one bit or more
 * of the above.  A limit is reached again and again in a program that makes many communicators, and
 * is spoken of once. */
void collx_setup_report_unshared(const struct collx_comm *comm, size_t size, uint64_t errors);

/* Nothing was set up, as the ranks `what`.  The first reason is said, once. */
void collx_setup_report_failed(const struct collx_comm *comm, const char *what);
#define COLLX_WHY_SURVIVES                                                                         \
    "shall survive the loss of others (mpirun --with-ft), of which they would not hear in "        \
    "collx's collectives"

/* What the policy demands and nothing can do is not done in silence. */
void collx_setup_report_unordered(const struct collx_comm *comm, const struct collx_setup *setup);

/* For COLLX_VERBOSE: which way the collectives go, how ranks wait, and the memory. */
void collx_setup_explain(const struct collx_setup *setup);

#endif
