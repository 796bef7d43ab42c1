/* The policy of this process, and how it is handed over. */
#ifndef COLLX_PMPI_POLICY_H
#define COLLX_PMPI_POLICY_H

#include "pmpi/comm.h"
#include "policies/policy.h"

/* The policy that this process holds: what a rank 0 handed to it, else the file that COLLX_POLICY
 * names, else the built-in one.  Reading happens at the first call; what is wrong with the file is
 * said then, once. */
const struct collx_policy *collx_policy_own(void);

/* How much of a policy has to be handed over; 0: it is the built-in one, which all have. */
uint64_t collx_policy_bytes(const struct collx_policy *policy);

/* So many bytes of rank 0's policy become *policy on all ranks and, of those that have none yet,
 * their own.  `received`: room for it on the others, which *policy points to then.  Collective.  0
 * or an MPI error. */
int collx_policy_hand_over(struct collx_comm *comm, uint64_t bytes,
                           const struct collx_policy **policy, struct collx_policy *received);

#endif
