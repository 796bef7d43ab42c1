/* The leaders of a team's nodes: of each the lowest of its ranks.  What they set up together they
 * find out step by step, and all ranks hear what becomes of it.
 */
#ifndef COLLX_LEADERS_H
#define COLLX_LEADERS_H

#include "base/algorithm.h"

enum { COLLX_LEADERS_TEXT = 376 }; /* of what a leader says went wrong */

struct collx_leaders {
    struct collx_team *team;
    int nodes;
    int own;     /* the number of this rank's node */
    bool leads;  /* this rank is its leader */
    int *rank;   /* [nodes] */
    char *heard; /* what all ranks have told last, while connecting */
};

/* How many nodes the team is on.  For attach() and connect() alone. */
int collx_leaders_count(const struct collx_team *team);

/* For attach().  Local.  0 or -ENOMEM; then there is nothing to finish. */
int collx_leaders_init(struct collx_leaders *leaders, struct collx_team *team);

/* For connect(), if there is more than one node: everybody tells what it has at `own`.  0, or an
 * MPI error and why. */
int collx_leaders_tell(struct collx_leaders *leaders, const void *own, size_t bytes, char *why,
                       size_t size);

/* What the leader of a node has told last, which was of that size. */
static inline const void *collx_leaders_heard(const struct collx_leaders *leaders, int node,
                                              size_t bytes)
{
    return leaders->heard + (size_t)leaders->rank[node] * bytes;
}

/* For connect(), as tell(): everybody hears whether a step went well on all leaders.  `error` is 0,
 * or what went wrong here, in words in `text`.  0; or the error of the first leader that has one,
 * and in `why` what it says, after `by`; or an MPI error, and why. */
int collx_leaders_agree(struct collx_leaders *leaders, const char *by, int error, const char *text,
                        char *why, size_t size);

/* There is nothing more to tell. */
void collx_leaders_agreed(struct collx_leaders *leaders);

void collx_leaders_finish(struct collx_leaders *leaders);

#endif
