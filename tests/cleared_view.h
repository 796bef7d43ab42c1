/* Memory of a communicator that has been freed, for the next one: what is C alone, for a test in
 * C++. */
#ifndef COLLX_TESTS_CLEARED_VIEW_H
#define COLLX_TESTS_CLEARED_VIEW_H

#ifdef __cplusplus
extern "C" {
#endif
#include "base/collectives.h"

/* How many bytes are not zero in what `shm` has cleared of memory for a Bcast or an Allreduce of so
 * many ranks, where ranks tell each other what they can, and which ways of long messages there are;
 * < 0: out of memory. */
long cleared_view_left(enum collx_kind kind, int ranks);

#ifdef __cplusplus
}
#endif
#endif
