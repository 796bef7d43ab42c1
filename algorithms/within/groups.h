/* Groups of ranks that sit together: at one cache, NUMA node or package.  Which of these is worth
 * anything is decided by what each collective takes, flat and in groups, by the model of
 * algorithms/within/lines.h; purely and without memory of its own, so that the space for it is
 * known, alike on all ranks, before anybody has any.
 */
#ifndef COLLX_GROUPS_H
#define COLLX_GROUPS_H

#include "algorithms/within/lines.h"
#include "base/algorithm.h"

/* The parameter `groups` of an algorithm. */
enum collx_groups_wanted { COLLX_GROUPS_AUTO, COLLX_GROUPS_NEVER, COLLX_GROUPS_ALWAYS };
extern const char *const collx_groups_words[];
#define COLLX_GROUPS_PARAM(help)                                                                   \
    {                                                                                              \
        "groups", help, COLLX_GROUPS_AUTO, COLLX_GROUPS_AUTO, COLLX_GROUPS_ALWAYS,                 \
            collx_groups_words                                                                     \
    }

enum {
    COLLX_GROUPS_FROM = 9,  /* ranks */
    COLLX_GROUPS_MOST = 16, /* each takes memory for itself */
};

struct collx_groups_plan {
    int groups;               /* 1: flat */
    enum collx_place_key key; /* what the ranks of a group share; the first of them leads */
    int64_t time;             /* ns, by the model */
    int far;                  /* how often a line goes from one package to another */
    int64_t flat_time;        /* the same, flat */
    int flat_far;
};

/* What a collective takes, flat: adds time and far to a plan that has none. */
typedef void collx_groups_flat(const struct collx_place *places, int ranks,
                               struct collx_groups_plan *plan);
/* In groups of this kind: groups as well. */
typedef void collx_groups_grouped(const struct collx_place *places, int ranks,
                                  enum collx_place_key key, struct collx_groups_plan *plan);

/* AUTO: in groups where the model says that it is cheaper by a tenth at least; ALWAYS: in the
 * cheapest groups that there are, if any.  Up to 8 ranks, and where `places` is NULL: flat. */
struct collx_groups_plan collx_groups_choose(const struct collx_place *places, int ranks,
                                             enum collx_groups_wanted wanted,
                                             collx_groups_flat *flat,
                                             collx_groups_grouped *grouped);

/* Who is in which group: equal on all ranks, but for `own`. */
struct collx_groups {
    int count;
    int own;      /* the group of this rank */
    int *of;      /* [ranks]: the group of each */
    int *index;   /* [ranks]: its place among the members, by rank */
    int *first;   /* [count]: the first member */
    int *members; /* [count] */
};

/* 0 or -ENOMEM; to be finished in either case. */
int collx_groups_init(struct collx_groups *groups, const struct collx_groups_plan *plan,
                      const struct collx_team *team);
void collx_groups_finish(struct collx_groups *groups);

#endif
