/* First calls on communicators, which nobody knows yet, that MPI has not returned from.  Not of
 * each thread: where an error handler has left one, another thread may make the next call, or free
 * the communicator.
 */
#ifndef COLLX_FIRSTS_H
#define COLLX_FIRSTS_H

#include "pmpi/comm.h"

/* One is about to be made; it is copied.  False: there is no memory for it. */
bool collx_firsts_put(const struct collx_handed *first);
/* The one on this communicator, of which there is one at a time; from then on there is none.
 * False: there is none. */
bool collx_firsts_take(uintptr_t comm, struct collx_handed *first);

#endif
