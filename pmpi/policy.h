/* The policy of this process, and how it is handed over. */
#ifndef COLLX_PMPI_POLICY_H
#define COLLX_PMPI_POLICY_H

#include "policies/policy.h"

/* The policy that this process holds: what a rank 0 handed to it, else the file that COLLX_POLICY
 * names, else the built-in one.  Reading happens at the first call; what is wrong with the file is
 * said then, once. */
const struct collx_policy *collx_policy_own(void);

/* Rank 0 of a communicator has handed over this policy: it is this process's own from now on,
 * unless it has one already.  Copies it. */
void collx_policy_adopt(const struct collx_policy *policy);

#endif
