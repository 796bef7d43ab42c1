/* Which way a call goes on a communicator whose routes have been agreed on. */
#ifndef COLLX_SELECT_H
#define COLLX_SELECT_H

#include "pmpi/comm.h"
#include "policies/policy.h"

enum { COLLX_CHOICES = 32 };

/* Make ready what the plan for one collective says.  `choices` as collx_policy_plan() made them; an
 * algorithm that is not in comm->routes.attached counts as the MPI library's.  May be repeated.  0
 * or -ENOMEM. */
int collx_select_prepare(struct collx_comm *comm, enum collx_kind kind,
                         const struct collx_choice *choices, int count);

/* Put what was made ready into the communicator's slot.  Cannot fail. */
void collx_select_install(struct collx_comm *comm, enum collx_kind kind);
/* How many calls of that kind have gone to algorithms since; of a correct program the same on all
 * ranks.  It may have gone round. */
uint64_t collx_select_calls(const struct collx_comm *comm, enum collx_kind kind);

/* What MPI wants to be the same on all ranks; 0 where it does not count.  Root and leaves of a
 * Bcast may cut the same bytes into different elements. */
struct collx_signature {
    uint64_t bytes;
    int32_t root;
    uint32_t elem_bytes;
    uint8_t kind, op, elem; /* enum collx_kind, collx_op, collx_elem */
    uint8_t pad[5];
};
_Static_assert(sizeof(struct collx_signature) == 24, "it travels as bytes");

/* Of a call on this communicator, also before it has routes.  False: MPI will not take the call, as
 * far as its arguments tell, and is to report what is wrong.  Local. */
bool collx_select_sign(const struct collx_comm *comm, enum collx_kind kind,
                       const struct collx_call *call, struct collx_signature *signature);

#endif
