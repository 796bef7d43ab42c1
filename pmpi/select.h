/* Which way a call goes on a communicator whose routes have been agreed on. */
#ifndef COLLX_SELECT_H
#define COLLX_SELECT_H

#include "pmpi/comm.h"
#include "policies/policy.h"

enum { COLLX_CHOICES = 32 };

/* Put the plan for one collective into its slot.  `choices` as collx_policy_plan() made them; every
 * algorithm in them is in comm->attached.  0 or -ENOMEM. */
int collx_select_install(struct collx_comm *comm, enum collx_kind kind,
                         const struct collx_choice *choices, int count);

#endif
