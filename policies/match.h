/* The pieces of matching that planning, explaining and checking a policy share. */
#ifndef COLLX_MATCH_H
#define COLLX_MATCH_H

#include "policies/policy.h"

/* Whether `text` is what `pattern` describes.  `?` does not take the place of a '*' in the text,
 * so that with a pattern for text it tells whether the first takes all that the second does. */
bool collx_glob(const char *pattern, const char *text);

/* Whether a rule is for this collective on this communicator, sizes and ops aside.  0, or
 * COLLX_EUNFIT and the first thing in the way, in `why`. */
int collx_rule_fits(const struct collx_rule *rule, const struct collx_facts *facts,
                    const char *comm_name, enum collx_kind kind, char *why, size_t size);

/* Whether a candidate can run.  0 and the algorithm (NULL: pmpi), or COLLX_EUNFIT and the reason
 * in `why`. */
int collx_use_fits(const struct collx_use *use, const struct collx_facts *facts,
                   enum collx_kind kind, uint64_t refused, const struct collx_algorithm **algorithm,
                   char *why, size_t size);

static inline bool collx_range_has(const struct collx_range *range, int64_t value)
{
    return range->first <= value && value <= range->last;
}

/* Whether calls of this collective have an op that rules tell apart. */
static inline bool collx_kind_reduces(enum collx_kind kind)
{
    return kind == COLLX_ALLREDUCE;
}

#endif
