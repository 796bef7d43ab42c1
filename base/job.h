/* Which job this process is of, as far as its launcher tells, before MPI does. */
#ifndef COLLX_JOB_H
#define COLLX_JOB_H

#include <stdint.h>

/* A number that all ranks of a job have, on all its nodes, and no other job has at the time; 0 if
 * no launcher tells of itself. */
uint64_t collx_job_launched(void);

#endif
