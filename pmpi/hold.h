/* Datatypes and operations of calls that are under way.
 *
 * Another thread may free them meanwhile: what an MPI library has begun it completes, and as soon
 * as another rank has what a call gave it, that rank may have them freed here.  The handles would
 * be dead then, or another type's.  So where threads may call MPI at the same time what a call
 * still needs is freed when the last such call is over.
 */
#ifndef COLLX_HOLD_H
#define COLLX_HOLD_H

#include "base/call.h"

/* Handles of one kind that a call uses, in a list while it does. */
struct collx_held {
    uintptr_t handle;
    int frees; /* MPI_Type_free or MPI_Op_free have been called so often since */
    struct collx_held *next;
};

/* Of the call that is under way on a communicator; zeroed before the first one.  Where nothing has
 * to be held it stays empty.  Not of a stack frame, which an operation of the program's may leave
 * by longjmp or by an exception: what such a call held is held until the next one. */
struct collx_hold {
    bool type_held, op_held;
    struct collx_held type, op;
};

/* Hold what a described Bcast or Allreduce uses and other threads may free, until the drop.  Local.
 */
void collx_hold_take(struct collx_hold *hold, const struct collx_call *call);
void collx_hold_drop(struct collx_hold *hold);

/* The communicator goes.  What a call that was left should have freed is not freed any more, since
 * MPI may take no calls. */
void collx_hold_forget(struct collx_hold *hold);

/* Take MPI_Type_free and MPI_Op_free over. */
void collx_hold_install(void);

#endif
