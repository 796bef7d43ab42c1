/* Rules that can never decide, and rules that overlap: see docs/policies.md. */
#include "base/error.h"
#include "policies/match.h"
#include "policies/read.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { RANKS, NODES, NODE_RANKS, BYTES, RANGES };

static const struct dimension {
    const char *key;
    enum collx_type type;
    int64_t min;
    size_t offset;
} dimensions[RANGES] = {
    [RANKS] = {"ranks", COLLX_NUMBER, 1, offsetof(struct collx_rule, ranks)},
    [NODES] = {"nodes", COLLX_NUMBER, 1, offsetof(struct collx_rule, nodes)},
    [NODE_RANKS] = {"ranks_per_node", COLLX_NUMBER, 1, offsetof(struct collx_rule, node_ranks)},
    [BYTES] = {"bytes", COLLX_SIZE, 0, offsetof(struct collx_rule, bytes)},
};

static const struct collx_range *range_of(const struct collx_rule *rule, int dimension)
{
    return (const void *)((const char *)rule + dimensions[dimension].offset);
}

/* What a rule matches for one collective; only for ranges and ops: the names are looked at
 * apart. */
struct box {
    struct collx_range range[RANGES];
    uint32_t ops;
};

static struct box box_of(const struct collx_rule *rule, enum collx_kind kind)
{
    struct box box = {.ops = rule->ops};

    for (int d = 0; d < RANGES; d++)
        box.range[d] = *range_of(rule, d);
    if (kind == COLLX_BARRIER && box.range[BYTES].last > 0)
        box.range[BYTES].last = 0; /* all that a barrier can have; may leave nothing */
    if (collx_kind_reduces(kind))
        box.ops &= ~(1u << COLLX_OP_NONE);
    else
        box.ops &= 1u << COLLX_OP_NONE;
    return box;
}

static bool is_empty(const struct box *box)
{
    bool empty = !box->ops;

    for (int d = 0; d < RANGES; d++)
        empty |= box->range[d].first > box->range[d].last;
    return empty;
}

struct search {
    const struct collx_policy *policy;
    enum collx_kind kind;
    const char *comm;
    uint64_t rules;  /* those that may take something away */
    unsigned budget; /* boxes cut so far; a policy made to be hard ends as "not covered" */
};

/* Whether the rules from number `r` on take all of the box: what the first of them leaves of it is
 * cut off, side by side, and has to be taken by the rest. */
static bool is_covered(struct search *search, struct box box, uint32_t r)
{
    while (r < search->policy->rules && !(search->rules >> r & 1))
        r++;
    if (r == search->policy->rules || search->budget == 0)
        return false;
    search->budget--;

    const struct collx_rule *rule = &search->policy->rule[r];
    struct box other = box_of(rule, search->kind);
    bool apart = is_empty(&other) || !(rule->kinds >> search->kind & 1) ||
                 !collx_glob_holds(rule->comm, search->comm) || !(other.ops & box.ops);
    for (int d = 0; d < RANGES; d++)
        apart |=
            other.range[d].last < box.range[d].first || box.range[d].last < other.range[d].first;
    /* Of this all nodes have to be in the range: of uneven ones some are in one half of the box,
     * and some in the other, and the rules for either take nothing. */
    apart |= box.range[NODE_RANKS].first < other.range[NODE_RANKS].first ||
             other.range[NODE_RANKS].last < box.range[NODE_RANKS].last;
    if (apart)
        return is_covered(search, box, r + 1);

    if (box.ops & ~other.ops) {
        struct box rest = box;
        rest.ops &= ~other.ops;
        if (!is_covered(search, rest, r + 1))
            return false;
        box.ops &= other.ops;
    }
    for (int d = 0; d < RANGES; d++) {
        struct box rest = box;
        if (box.range[d].first < other.range[d].first) {
            rest.range[d].last = other.range[d].first - 1;
            if (!is_covered(search, rest, r + 1))
                return false;
            box.range[d].first = other.range[d].first;
        }
        rest = box;
        if (box.range[d].last > other.range[d].last) {
            rest.range[d].first = other.range[d].last + 1;
            if (!is_covered(search, rest, r + 1))
                return false;
            box.range[d].last = other.range[d].last;
        }
    }
    return true;
}

/* Whether these rules together take all that rule number `at` matches. */
static bool takes_all(const struct collx_policy *policy, uint32_t at, uint64_t rules)
{
    const struct collx_rule *rule = &policy->rule[at];
    struct search search = {policy, COLLX_BARRIER, rule->comm, rules, 20000};

    for (unsigned kind = 0; kind < COLLX_ROUTED; kind++) {
        struct box box = box_of(rule, kind);

        search.kind = kind;
        if (rule->kinds >> kind & 1 && !is_empty(&box) && !is_covered(&search, box, 0))
            return false;
    }
    return true;
}

static int check_reachable(const struct collx_policy *policy, uint32_t at, uint64_t earlier,
                           char *why, size_t size)
{
    for (uint32_t r = 0; r < at; r++)
        if (earlier >> r & 1 && takes_all(policy, at, 1ull << r)) {
            snprintf(why, size,
                     "this rule can never decide: the one in line %" PRIu32
                     " takes all that it matches; move it before that one, or take it out",
                     policy->rule[r].line);
            return COLLX_EINVALID;
        }
    if (takes_all(policy, at, earlier)) {
        snprintf(why, size,
                 "this rule can never decide: those before it together take all that it matches; "
                 "move it up, or take it out");
        return COLLX_EINVALID;
    }
    return 0;
}

/* Neither holds the other, and they have something in common. */
static bool ranges_cross(const struct collx_range *a, const struct collx_range *b)
{
    return (a->first < b->first && b->first <= a->last && a->last < b->last) ||
           (b->first < a->first && a->first <= b->last && b->last < a->last);
}

static bool sets_cross(uint32_t a, uint32_t b)
{
    return a & b && a & ~b && b & ~a;
}

/* "barrier, bcast" */
static char *list_words(uint32_t set, const char *(*name)(unsigned), char *text, size_t size)
{
    size_t length = 0;

    *text = '\0';
    for (unsigned i = 0; i < 32 && length < size; i++)
        if (set >> i & 1 && name(i))
            length +=
                (size_t)snprintf(text + length, size - length, "%s%s", length ? ", " : "", name(i));
    return text;
}

static void say_ranges_cross(const struct collx_rule *rule, const struct collx_rule *earlier, int d,
                             char *why, size_t size)
{
    const struct collx_range *mine = range_of(rule, d), *its = range_of(earlier, d);
    struct collx_range both, rest;
    char common[2 * COLLX_VALUE_MAX], left[2 * COLLX_VALUE_MAX];

    if (its->first < mine->first) {
        both = (struct collx_range){mine->first, its->last};
        rest = (struct collx_range){its->last + 1, mine->last};
    } else {
        both = (struct collx_range){its->first, mine->last};
        rest = (struct collx_range){mine->first, its->first - 1};
    }
    snprintf(
        why, size,
        "this rule overlaps the one in line %" PRIu32
        ": both match %s %s; write %s: %s here, or change the other",
        earlier->line, dimensions[d].key,
        collx_range_format(dimensions[d].type, &both, dimensions[d].min, common, sizeof common),
        dimensions[d].key,
        collx_range_format(dimensions[d].type, &rest, dimensions[d].min, left, sizeof left));
}

static void say_sets_cross(const char *key, uint32_t mine, uint32_t its, uint32_t line,
                           const char *(*name)(unsigned), char *why, size_t size)
{
    char common[COLLX_WHY_MAX / 4], left[COLLX_WHY_MAX / 4];

    snprintf(why, size,
             "this rule overlaps the one in line %" PRIu32
             ": both match %s %s; write %s: [%s] here, or change the other",
             line, key, list_words(mine & its, name, common, sizeof common), key,
             list_words(mine & ~its, name, left, sizeof left));
}

/* Two rules overlap if they differ in one key only and cross there: then which of them is meant
 * for what both match is a matter of their order alone, which is easily a slip.  One that holds
 * the other (first the exception, then the rest) is how policies are written. */
static int check_overlap(const struct collx_rule *rule, const struct collx_rule *earlier, char *why,
                         size_t size)
{
    unsigned differ = (rule->kinds != earlier->kinds) + (rule->ops != earlier->ops) +
                      (strcmp(rule->comm, earlier->comm) != 0);

    for (int d = 0; d < RANGES; d++)
        differ += memcmp(range_of(rule, d), range_of(earlier, d), sizeof(struct collx_range)) != 0;
    if (differ != 1)
        return 0;

    if (sets_cross(rule->kinds, earlier->kinds)) {
        say_sets_cross("collective", rule->kinds, earlier->kinds, earlier->line, collx_kind_name,
                       why, size);
        return COLLX_EINVALID;
    }
    if (sets_cross(rule->ops, earlier->ops)) {
        say_sets_cross("op", rule->ops, earlier->ops, earlier->line, collx_op_name, why, size);
        return COLLX_EINVALID;
    }
    for (int d = 0; d < RANGES; d++)
        if (ranges_cross(range_of(rule, d), range_of(earlier, d))) {
            say_ranges_cross(rule, earlier, d, why, size);
            return COLLX_EINVALID;
        }
    return 0;
}

/* What no communicator and no call can be.  A rule for all collectives may well be about sizes or
 * ops that some of them do not have; one that names them may not. */
static int check_possible(const struct collx_rule *rule, char *why, size_t size)
{
    bool named = rule->kinds != (1u << COLLX_ROUTED) - 1;

    if (rule->nodes.first > rule->ranks.last || rule->node_ranks.first > rule->ranks.last) {
        bool nodes = rule->nodes.first > rule->ranks.last;
        snprintf(why, size,
                 "this rule can never match: '%s' begins at %" PRId64 ", which takes as many "
                 "ranks, and 'ranks' ends at %" PRId64 "; change one of them",
                 nodes ? "nodes" : "ranks_per_node",
                 nodes ? rule->nodes.first : rule->node_ranks.first, rule->ranks.last);
        return COLLX_EINVALID;
    }
    for (unsigned kind = 0; named && kind < COLLX_ROUTED; kind++) {
        struct box box = box_of(rule, kind);

        if (rule->kinds >> kind & 1 && is_empty(&box)) {
            snprintf(why, size,
                     "this rule can never match %s, which has no %s; leave out %s or '%s' here",
                     collx_kind_name(kind), box.ops ? "bytes" : "op", collx_kind_name(kind),
                     box.ops ? "bytes" : "op");
            return COLLX_EINVALID;
        }
    }
    return 0;
}

int collx_rule_check(const struct collx_policy *policy, uint32_t at, uint64_t good, char *why,
                     size_t size)
{
    uint64_t earlier = good & ((1ull << at) - 1);
    int error = check_possible(&policy->rule[at], why, size);

    if (!error)
        error = check_reachable(policy, at, earlier, why, size);
    for (uint32_t r = 0; !error && r < at; r++)
        if (earlier >> r & 1)
            error = check_overlap(&policy->rule[at], &policy->rule[r], why, size);
    return error;
}
