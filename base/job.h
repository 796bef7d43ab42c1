/* Which job this process is of, as far as its launcher tells, before MPI does; and who speaks for
 * those of it that are on a node. */
#ifndef COLLX_JOB_H
#define COLLX_JOB_H

#include <stdbool.h>
#include <stdint.h>

/* A number that all ranks of a job have, on all its nodes, and no other job has at the time; 0 if
 * no launcher tells of itself. */
uint64_t collx_job_launched(void);

/* A number that nothing else has, not 0: for whoever hands it to the others of a job.  What
 * launchers tell comes again: a port that is free again, the process numbers of a container. */
uint64_t collx_job_unique(void);

/* Whether this process has no others in its job, of `world_size` processes, or 0: nobody knows. */
bool collx_job_alone(int world_size);

/* Whether this is the first of the job's processes on this node that asks for `what`, a word: it
 * speaks for those that ask after it.  Who will ask nobody knows, so it cannot be agreed.  The
 * first has a file descriptor in *claim, which keeps its place until it is closed, or the process
 * ends; else it is negative.  Several are the first where they have no network namespace in common;
 * and where there is no descriptor to have, which is negative then. */
bool collx_job_first_here(const char *what, int *claim);

#endif
