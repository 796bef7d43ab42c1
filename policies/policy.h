/* The policy: which communicator, collective and size goes which way.
 *
 * A policy is flat, without pointers, so that rank 0 hands it to the others as bytes and only
 * rank 0 needs a YAML reader (policies/read.c, in libcollx-policy.so, loaded on demand).
 * docs/policies.md says what it means.
 */
#ifndef COLLX_POLICY_H
#define COLLX_POLICY_H

#include "base/algorithm.h"
#include "base/parse.h"

enum {
    COLLX_POLICY_VERSION = 3,  /* of what ranks make of the same one; raise it where that changes */
    COLLX_POLICY_RULES = 64,   /* rules a policy may have */
    COLLX_POLICY_USES = 8,     /* algorithms a rule may prefer, in order */
    COLLX_POLICY_OPTIONS = 16, /* options a policy may set */
    COLLX_NAME_MAX = 24,       /* an algorithm's or option's name, with its NUL */
    COLLX_PATTERN_MAX = 128,   /* a communicator's name or a glob for it, with its NUL */
};

struct collx_use {
    char name[COLLX_NAME_MAX]; /* "pmpi", or an algorithm */
    /* Complete: defaults are filled in.  One for each collective, because algorithms of the same
     * name need not have the same parameters. */
    struct collx_args args[COLLX_ROUTED];
};

/* In which order a reduction combines what the ranks contribute. */
enum collx_order {
    COLLX_ORDER_ANY,  /* as the algorithm does it */
    COLLX_ORDER_RANK, /* rank 0, 1, 2, … from the left, wherever the ranks are */
};

struct collx_rule {
    uint32_t line;  /* where it stands in the file; 0 in the built-in policy */
    uint32_t kinds; /* 1 << enum collx_kind */
    uint32_t ops;   /* 1 << enum collx_op; all ones: any, also for what has no op */
    uint32_t uses;  /* how many of use[] there are; at least one */
    uint32_t order; /* enum collx_order; of those of its collectives that reduce */
    uint32_t pad;
    struct collx_range ranks, nodes, node_ranks, bytes;
    char comm[COLLX_PATTERN_MAX]; /* glob: * is any text, ? any character */
    struct collx_use use[COLLX_POLICY_USES];
};

/* How the source begins of a policy that a program has made for itself, in a file without a name.
 */
#define COLLX_POLICY_NAMELESS "/proc/self/fd/"

struct collx_policy {
    uint32_t version;
    uint32_t rules;
    uint32_t options;
    uint32_t pad;
    char source[256]; /* file name, or "built-in" */
    struct {
        char word[COLLX_NAME_MAX], value[64];
    } option[COLLX_POLICY_OPTIONS];
    struct collx_rule rule[COLLX_POLICY_RULES];
};

/* Where each key of `match` is everything. */
#define COLLX_RULE_ANY                                                                             \
    .kinds = (1u << COLLX_ROUTED) - 1, .ops = UINT32_MAX, .comm = "*", .ranks = {1, INT64_MAX},    \
    .nodes = {1, INT64_MAX}, .node_ranks = {1, INT64_MAX}, .bytes = {0, INT64_MAX}

/* Bytes of a policy that are in use: what has to be handed over. */
size_t collx_policy_size(const struct collx_policy *policy);

/* The policy that holds without a file; the same as policies/default.yaml, which a test checks. */
const struct collx_policy *collx_policy_builtin(void);

/* Whether any of its rules demands an order. */
bool collx_policy_orders(const struct collx_policy *policy);

/* Whether any of its rules names what may need messages, or demands an order, which may. */
bool collx_policy_sends(const struct collx_policy *policy);

/* Set the options that the policy asks for, and undo what an earlier one asked for and this one
 * does not; every rank does so for the policy that it was handed.  What the environment has set
 * stays. */
void collx_policy_apply_options(const struct collx_policy *policy);

/* What could not be set up on a communicator, so that it is planned again without it: the same on
 * all its ranks, but for the reasons. */
enum { COLLX_REFUSED_MAX = 32 };
struct collx_refused {
    uint64_t algorithms; /* bit i: collx_algorithms[i], with whatever parameters */
    int uses;
    struct {
        const struct collx_algorithm *algorithm;
        struct collx_args args; /* with these alone */
        char why[COLLX_WHY_MAX];
    } use[COLLX_REFUSED_MAX];
};

/* An algorithm that may carry out a call, and its parameters, which belong to the policy. */
struct collx_candidate {
    const struct collx_algorithm *algorithm;
    const struct collx_args *args;
};
enum { COLLX_CANDIDATES = 4 };

/* What decides about one collective on one communicator, for one range of bytes and some ops. */
struct collx_choice {
    struct collx_range bytes;
    uint32_t ops;
    uint32_t rule; /* index into policy->rule; UINT32_MAX: none matched */
    /* Of COLLX_ORDER_RANK, which the MPI library does not promise: where it gets a call, what the
     * policy asks for is not there. */
    bool rank_order;
    /* Who is asked, one after the other, until one takes the call; the MPI library has the rest.
     * Each algorithm once, and none behind one that takes all. */
    int candidates;
    struct collx_candidate candidate[COLLX_CANDIDATES];
};

/* All choices for one collective on one communicator: disjoint, covering every size and op, at
 * most `max` of them, in ascending order of bytes.  What has no size or no op (a barrier) gets one
 * choice for all of them.  Pure: the same on all ranks for the same policy, facts and name.
 * Algorithms whose query() says no are passed over, as are those that are in `refused`, which
 * may be NULL.  Returns how many, or -E2BIG. */
int collx_policy_plan(const struct collx_policy *policy, const struct collx_facts *facts,
                      const char *comm_name, enum collx_kind kind,
                      const struct collx_refused *refused, struct collx_choice *choices, int max);

/* Say who decides what for one communicator, and why candidates cannot run: what `collx policy
 * explain` and COLLX_VERBOSE=1 show.  With bytes < 0 a table of all sizes and ops; else about one
 * call of that size and op, with the rules that it does not match.  `emit` gets lines without
 * newline. */
void collx_policy_explain(const struct collx_policy *policy, const struct collx_facts *facts,
                          const char *comm_name, enum collx_kind kind,
                          const struct collx_refused *refused, int64_t bytes, enum collx_op op,
                          void (*emit)(void *ctx, const char *line), void *ctx);

/* Everything that two builds must have in common for one to understand what the other makes of a
 * policy, and their processes to work together: the algorithms and what those do, and how a policy
 * lies in memory. */
uint64_t collx_policy_version(void);

/* Reads a policy file.  0, -errno (the
 * file cannot be read), or COLLX_EINVALID (what it says is wrong); then *policy is undefined and
 * report() was told everything that is wrong, in one or more messages that need nothing added:
 * "file:line:column: what is wrong; what would be right".  Never blocks, also not on a pipe.
 * Local; sets no option. */
typedef int collx_policy_read_fn(const char *path, struct collx_policy *policy,
                                 void (*report)(void *ctx, const char *message), void *ctx);

/* The one symbol of libcollx-policy.so. */
struct collx_policy_reader {
    uint64_t (*version)(void); /* collx_policy_version() of the build that it is from */
    collx_policy_read_fn *read;
};
extern const struct collx_policy_reader collx_policy_reader;

/* That function, out of libcollx-policy.so in `folder`: only processes that read a policy load it,
 * and libfyaml with it.  NULL, and why: it cannot be loaded, or is not of this build.  It belongs
 * beside `library`. */
collx_policy_read_fn *collx_policy_load_reader(const char *folder, const char *library, char *why,
                                               size_t size);

#endif
