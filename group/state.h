/* What a group is made of; inside of libcollx-group.so alone. */
#ifndef COLLX_GROUP_STATE_H
#define COLLX_GROUP_STATE_H

#include "base/algorithm.h"
#include "group/group.h"
#include "policies/policy.h"

#include <sys/types.h>

/* An algorithm at work. */
struct collx_group_attached {
    const struct collx_algorithm *algorithm;
    struct collx_args args;
    struct collx_slot slot;
    size_t space; /* of the node's segment */
    bool works;   /* it is attached and connected, everywhere */
};

/* What may carry out a call: the first that matches it, and takes it, does. */
struct collx_group_candidate {
    enum collx_kind kind;
    struct collx_range bytes;
    uint32_t ops;
    int attached; /* index */
};

enum { COLLX_GROUP_NAME = 64 };

struct collx_group {
    struct collx_group_config config;
    pid_t owner; /* who made it; a forked child has not got its memory */
    char name[COLLX_GROUP_NAME];
    struct collx_team team;
    struct collx_facts facts;
    int *node; /* [size] */
    int leader, node_ranks;
    void *segment; /* shared by the ranks of the node; NULL: none */
    size_t segment_size;
    struct collx_group_attached *attached;
    int attached_count;
    struct collx_group_candidate *candidate;
    int candidates;
    struct collx_group_message *message; /* [messages]: for transfer() */
    int messages;
};

/* group/lend.c: what a group lends to its team; its ctx is the group. */
extern const struct collx_lender_ops collx_group_lent;

/* An operation of the caller's own: what call->op is. */
struct collx_group_operation {
    collx_group_combine *combine;
    void *context;
};

/* group/setup.c: all of create() but for the memory of the group itself.  Collective.  0 or -errno
 * and why; then what has come about is in the group, to be undone. */
int collx_group_setup(struct collx_group *group, char *why, size_t size);

/* group/candidates.c: who may do what.  Local and pure.  0 or -ENOMEM. */
int collx_group_list(struct collx_group *group, const struct collx_policy *policy);

/* group/policy.c: that of this process.  NULL and why: it cannot be read.  To be freed. */
struct collx_policy *collx_group_policy_own(const struct collx_group *group, char *why,
                                            size_t size);
/* What holds without a file, and after it.  Never fails. */
const struct collx_policy *collx_group_policy_builtin(void);

#endif
