/* Setting a group up, by what its user lends: one agreement, in which all ranks go through the same
 * gathers, whatever goes wrong.
 *
 *   1. Everybody tells where it is and which collx it has; rank 0, whether it has a policy.
 *   2. Rank 0 hands its policy over, and its name for the group.  Same policy, name and facts: all
 *      list the same candidates.
 *   3. The leader of each node makes the segment that these need; the others map it.
 *   4. What wants memory is dropped if anybody has no segment, and attached otherwise; what could
 *      not be attached everywhere is dropped.  The rest is connected, and dropped if that fails.
 */
#include "algorithms/crowd.h"
#include "algorithms/facts.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/options.h"
#include "group/state.h"
#include "hw/shm.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What each rank tells; it travels as bytes. */
struct told {
    int32_t error;    /* not 0: it went wrong here, and there will be no group */
    int32_t unshared; /* not 0: why it has no segment; there may be other ways */
    uint64_t collx;   /* hash of what two collx must have in common */
    uint64_t node;    /* the same for processes of a node */
    uint64_t bytes;   /* of rank 0's policy */
    struct collx_shm_address segment;
};
_Static_assert(sizeof(struct told) == 48, "it travels as bytes");

/* One setup, while it lasts. */
struct setup {
    struct collx_group *group;
    struct collx_policy *policy;
    void *all; /* [size], of COLLX_GATHER_MAX bytes */
};

static int gather(struct setup *setup, const void *own, size_t bytes, char *why, size_t size)
{
    const struct collx_group_config *config = &setup->group->config;
    int error = config->gather(config->context, own, setup->all, bytes);

    if (error)
        snprintf(why, size, "gather() failed with %d", error);
    return error;
}

static const struct told *told_by(const struct setup *setup, int rank)
{
    return (const struct told *)setup->all + rank;
}

/* 1.  `why` says on rank 0 what is wrong with its policy. */
static int say_hello(struct setup *setup, char *why, size_t size)
{
    struct collx_group *group = setup->group;
    const struct collx_group_config *config = &group->config;
    const uint32_t told = sizeof(struct told);
    struct told own = {.collx = collx_hash(collx_policy_version(), &told, sizeof told),
                       .node = config->node ? config->node : collx_shm_node()};

    if (config->rank == 0) {
        setup->policy = collx_group_policy_own(group, why, size);
        own.error = setup->policy ? 0 : -EINVAL;
        own.bytes = setup->policy ? collx_policy_size(setup->policy) : 0;
    }
    int error = gather(setup, &own, sizeof own, why, size);
    if (error)
        return error;
    if (told_by(setup, 0)->error) {
        if (config->rank != 0)
            snprintf(why, size, "rank 0 cannot read its policy");
        return told_by(setup, 0)->error;
    }
    for (int rank = 0; rank < config->size; rank++)
        if (told_by(setup, rank)->collx != told_by(setup, 0)->collx) {
            snprintf(why, size,
                     "rank %d has another version of libcollx-group.so than rank 0. Use one "
                     "installation for all ranks",
                     rank);
            return -EINVAL;
        }
    return 0;
}

static int find_nodes(struct setup *setup)
{
    struct collx_group *group = setup->group;
    const int size = group->config.size;
    struct collx_member *members = calloc((unsigned)size, sizeof *members);

    group->node = calloc((unsigned)size, sizeof *group->node);
    if (!members || !group->node) {
        free(members);
        return -ENOMEM;
    }
    for (int rank = 0; rank < size; rank++)
        members[rank] = (struct collx_member){told_by(setup, rank)->node, rank};
    collx_facts_init(&group->facts, members, size, group->node);
    group->facts.numa_nodes = 1;
    free(members);
    while (group->node[group->leader] != group->node[group->config.rank])
        group->leader++;
    for (int rank = 0; rank < size; rank++)
        group->node_ranks += group->node[rank] == group->node[group->leader];
    return 0;
}

/* 2. */
static int hand_over(struct setup *setup, char *why, size_t size)
{
    struct collx_group *group = setup->group;
    const size_t bytes = told_by(setup, 0)->bytes;
    int error = 0;

    if (!setup->policy)
        setup->policy = calloc(1, sizeof *setup->policy);
    char nothing[COLLX_GATHER_MAX] = {0}, *policy = (char *)setup->policy;
    for (size_t at = 0; !error && at < bytes; at += COLLX_GATHER_MAX) {
        size_t piece = bytes - at < COLLX_GATHER_MAX ? bytes - at : COLLX_GATHER_MAX;
        error = gather(setup, policy && group->config.rank == 0 ? policy + at : nothing, piece, why,
                       size);
        if (!error && policy)
            memcpy(policy + at, setup->all, piece);
    }
    if (!error && policy)
        collx_policy_apply_options(setup->policy);
    /* Its rules may match the name. */
    if (!error)
        error = gather(setup, group->name, sizeof group->name, why, size);
    if (!error)
        memcpy(group->name, setup->all, sizeof group->name);
    return error;
}

/* 3, of the leader. */
static int make_segment(struct collx_group *group, struct collx_shm_address *address)
{
    int fd, error = collx_shm_create(group->segment_size, &group->segment, &fd);

    if (error)
        return error;
    error = collx_shm_allocate(fd, group->segment_size);
    if (error) {
        close(fd);
        return error;
    }
    struct collx_crowd *crowd = group->segment;
    *address = collx_shm_tell(fd, &crowd->cookie);
    return 0;
}

/* 3.  Without memory of its own, own->error, a rank takes no part in it; why it has no segment is
 * in own->unshared afterwards.  0 or what gather() returns. */
static int map_segment(struct setup *setup, struct told *own, char *why, size_t size)
{
    struct collx_group *group = setup->group;
    const bool leads = group->leader == group->config.rank;

    group->segment_size = sizeof(struct collx_crowd);
    for (int i = 0; i < group->attached_count; i++)
        group->segment_size += group->attached[i].space;
    if (leads && !own->error)
        own->unshared = make_segment(group, &own->segment);
    const bool made = leads && !own->error && !own->unshared;
    int error = gather(setup, own, sizeof *own, why, size);
    const struct told *leader = told_by(setup, group->leader);
    const bool joins = !error && !own->error && !leader->error;
    if (joins && !leads)
        own->unshared = leader->unshared
                            ? leader->unshared
                            : collx_shm_open(&leader->segment, group->segment_size,
                                             offsetof(struct collx_crowd, cookie), &group->segment);
    if (joins && !own->unshared)
        collx_crowd_join(group->segment, group->team.rank);
    if (!error)
        error = gather(setup, own, sizeof *own, why, size);
    if (made)
        close(own->segment.fd);
    return error;
}

/* 4, first half: with the segments that all have, or without any. */
static void attach(struct collx_group *group, bool shared)
{
    size_t at = sizeof(struct collx_crowd);

    for (int i = 0; i < group->attached_count; i++) {
        struct collx_group_attached *attached = &group->attached[i];

        attached->works =
            (shared || !attached->space) &&
            !attached->algorithm->attach(&group->team, &attached->args,
                                         attached->space ? (char *)group->segment + at : NULL,
                                         &attached->slot);
        at += attached->space;
    }
}

/* What does not work everywhere works nowhere. */
static int agree(struct setup *setup, char *why, size_t size)
{
    struct collx_group *group = setup->group;
    char own[COLLX_GATHER_MAX];
    int error = 0;

    for (int first = 0; !error && first < group->attached_count; first += COLLX_GATHER_MAX) {
        int count = group->attached_count - first;
        count = count < COLLX_GATHER_MAX ? count : COLLX_GATHER_MAX;
        for (int i = 0; i < count; i++)
            own[i] = group->attached[first + i].works;
        error = gather(setup, own, (size_t)count, why, size);
        for (int i = 0; i < count && !error; i++) {
            struct collx_group_attached *attached = &group->attached[first + i];
            bool everywhere = true;
            for (int rank = 0; rank < group->team.size; rank++)
                everywhere = everywhere && ((const char *)setup->all)[rank * count + i];
            if (attached->works && !everywhere)
                attached->algorithm->detach(attached->slot.state);
            attached->works = everywhere;
        }
    }
    return error;
}

/* 4, second half. */
static void connect(struct collx_group *group)
{
    for (int i = 0; i < group->attached_count; i++) {
        struct collx_group_attached *attached = &group->attached[i];
        char text[COLLX_WHY_MAX] = "another rank could not set it up";

        if (!attached->works || !attached->algorithm->connect ||
            !attached->algorithm->connect(&group->team, &attached->slot, text, sizeof text))
            continue;
        attached->algorithm->detach(attached->slot.state);
        attached->works = false;
        if (group->team.rank == 0 && collx_option_number(COLLX_OPTION_VERBOSE) > 0)
            collx_warn("%s of %s cannot be used on %s: %s", attached->algorithm->name,
                       collx_kind_name(attached->algorithm->kind), group->name, text);
    }
}

static int go(struct setup *setup, char *why, size_t size)
{
    struct collx_group *group = setup->group;
    const struct collx_group_config *config = &group->config;
    struct told own = {.error = 0};
    int error = say_hello(setup, why, size);

    if (error)
        return error;
    own.error = find_nodes(setup);
    error = hand_over(setup, why, size);
    if (error)
        return error;
    group->team = (struct collx_team){.rank = config->rank,
                                      .size = config->size,
                                      .node = group->node,
                                      .ops = &collx_group_lent,
                                      .ctx = group,
                                      .name = group->name};
    if (!own.error)
        own.error = setup->policy ? collx_group_list(group, setup->policy) : -ENOMEM;
    error = map_segment(setup, &own, why, size);
    int unshared = 0;
    for (int rank = 0; rank < config->size && !error; rank++) {
        unshared = unshared ? unshared : -told_by(setup, rank)->unshared;
        error = told_by(setup, rank)->error;
        if (error)
            snprintf(why, size, "rank %d is out of memory", rank);
    }
    if (error)
        return error;
    const bool shared = !unshared;
    if (!shared && config->rank == 0)
        collx_warn("the ranks of %s cannot share memory (%s), so its collectives go another way, "
                   "if there is one. %s",
                   group->name, strerror(unshared), collx_shm_advice(unshared));
    attach(group, shared);
    error = agree(setup, why, size);
    if (error)
        return error;
    connect(group);
    error = agree(setup, why, size);
    collx_crowd_decide(shared ? group->segment : NULL, group->node_ranks, &group->team);
    group->team.node = NULL; /* it was for attach() and connect() alone */
    return error;
}

int collx_group_setup(struct collx_group *group, char *why, size_t size)
{
    struct setup setup = {.group = group,
                          .all = calloc((unsigned)group->config.size, COLLX_GATHER_MAX)};
    int error = setup.all ? go(&setup, why, size) : -ENOMEM;

    if (!setup.all)
        snprintf(why, size, "out of memory");
    free(setup.policy);
    free(setup.all);
    return error;
}
