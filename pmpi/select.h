/* Which way a call goes on a communicator whose routes have been agreed on. */
#ifndef COLLX_SELECT_H
#define COLLX_SELECT_H

#include "pmpi/comm.h"
#include "policies/policy.h"

enum { COLLX_CHOICES = 32 };

/* Make ready what the plan for one collective says.  `choices` as collx_policy_plan() made them; an
 * algorithm that is not in comm->attached counts as the MPI library's.  May be repeated.  0 or
 * -ENOMEM. */
int collx_select_prepare(struct collx_comm *comm, enum collx_kind kind,
                         const struct collx_choice *choices, int count);

/* Put what was made ready into the communicator's slot.  Cannot fail. */
void collx_select_install(struct collx_comm *comm, enum collx_kind kind);

/* Whether MPI will take the call, as far as its arguments tell; else it is to report what is wrong.
 * A call on any communicator, also before it has routes.  Local. */
bool collx_select_understands(enum collx_kind kind, const struct collx_call *call);

#endif
