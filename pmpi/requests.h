/* What has to happen when a request is over. */
#ifndef COLLX_REQUESTS_H
#define COLLX_REQUESTS_H

#include "pmpi/pmpi.h"

#include <stdint.h>

/* Put the entries that see requests end into the door's table: MPI_Wait, MPI_Test and their kin,
 * and MPI_Request_free.  More than once is as good as once. */
void collx_requests_install(void);

/* A nonblocking collective has returned this request; collx_trace_complete() is told the event when
 * it is over. */
void collx_request_watch(MPI_Request request, uint64_t event);
/* What the MPI library may look at until the request is over, or freed, if it is a persistent one:
 * it is given to free() then. */
void collx_request_keep(MPI_Request request, void *memory);

#endif
