/* Inside libcollx-policy.so: the reader, and what checks the rules that it has read. */
#ifndef COLLX_READ_H
#define COLLX_READ_H

#include "policies/policy.h"

collx_policy_read_fn collx_policy_read;

/* Whether rule number `at` can decide about anything, and is told apart from the rules before it;
 * of these only those count whose bit in `good` is set.  0, or COLLX_EINVALID and what is wrong in
 * `why`.  Pure. */
int collx_rule_check(const struct collx_policy *policy, uint32_t at, uint64_t good, char *why,
                     size_t size);

#endif
