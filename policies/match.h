/* The pieces of matching that planning, explaining and checking a policy share. */
#ifndef COLLX_MATCH_H
#define COLLX_MATCH_H

#include "policies/policy.h"

/* Whether `pattern` describes this name. */
bool collx_glob(const char *pattern, const char *name);
/* Whether it describes all names that the other pattern does; false may be wrong. */
bool collx_glob_holds(const char *pattern, const char *other);

/* Whether a rule is for this collective on this communicator, sizes and ops aside.  0, or
 * COLLX_EUNFIT and the first thing in the way, in `why`. */
int collx_rule_fits(const struct collx_rule *rule, const struct collx_facts *facts,
                    const char *comm_name, enum collx_kind kind, char *why, size_t size);

/* Candidate number `i` of a rule for a collective, or NULL: there are no more.  After those that
 * the rule names comes the last resort of `order: rank`. */
const struct collx_use *collx_rule_use(const struct collx_rule *rule, enum collx_kind kind,
                                       uint32_t i);

/* Whether a candidate of a rule can run.  0 and the algorithm (NULL: pmpi), or COLLX_EUNFIT and the
 * reason in `why`. */
int collx_use_fits(const struct collx_rule *rule, const struct collx_use *use,
                   const struct collx_facts *facts, enum collx_kind kind,
                   const struct collx_refused *refused, const struct collx_algorithm **algorithm,
                   char *why, size_t size);

/* From its rule: everything else of a choice but bytes and ops, which is zero. */
void collx_choice_decide(struct collx_choice *choice, const struct collx_policy *policy,
                         const struct collx_facts *facts, enum collx_kind kind,
                         const struct collx_refused *refused);

static inline bool collx_range_has(const struct collx_range *range, int64_t value)
{
    return range->first <= value && value <= range->last;
}

/* Whether calls of this collective have an op that rules tell apart. */
static inline bool collx_kind_reduces(enum collx_kind kind)
{
    return kind == COLLX_ALLREDUCE;
}

/* Whether the rule demands the order of the ranks of this collective. */
static inline bool collx_rule_orders(const struct collx_rule *rule, enum collx_kind kind)
{
    return rule->order == COLLX_ORDER_RANK && collx_kind_reduces(kind);
}

#endif
