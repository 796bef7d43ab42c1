/* The routes of communicators that a program has freed, for the next ones of the same ranks.
 *
 * A program that makes a communicator, uses it for a while and frees it, over and over, has the
 * same routes each time.  So they are not taken down but kept with their segment (hw/spares.h), as
 * they are, at work: what lies there, and how far each rank has counted.  To whoever goes on with
 * them the first call on the next communicator is the one after the last on the freed one, so a
 * rank that is still in that last call hinders nobody, and there is nothing to clear.
 *
 *   1. A rank that frees a communicator keeps its routes, under the segment's cookie, which is the
 *      same on all its ranks.
 *   2. Before a communicator is set up each rank finds the latest that it has kept of the same
 *      ranks in the same order.  And of the same name: the policy may go by it.
 *   3. If all have found the same, which they hear in the first words of the setup, those are its
 *      routes.  If not they are put back, and the setup takes its course.  So it does where ranks
 *      have made more calls than others, as with a Bcast too many, of which the root hears nothing:
 *      that is the end of it when the communicator is freed, with the MPI library as well.
 *   4. Routes whose segment another communicator gets, or nobody, are closed.
 *
 * Kept are those of one node alone, with the messages that all communicators share: links, windows
 * and messages of their own are of one communicator, and TUC barriers are few.
 */
#ifndef COLLX_KEPT_H
#define COLLX_KEPT_H

#include "pmpi/comm.h"

struct collx_kept;

/* The communicator is about to be freed by its program: keep its routes, if they can be another's;
 * then it has none any more.  And remember how much it was used.  Local; may call MPI. */
void collx_kept_keep(struct collx_comm *comm);

/* Those for `comm`, of which the name is known; NULL: there are none.  Local; may call MPI. */
struct collx_kept *collx_kept_find(struct collx_comm *comm);

/* A number of what all ranks have to have found; 0 of NULL. */
uint64_t collx_kept_hash(const struct collx_kept *kept);

/* They have: into `comm`, which has no routes. */
void collx_kept_take(struct collx_kept *kept, struct collx_comm *comm);
/* They have not.  NULL is none. */
void collx_kept_put_back(struct collx_kept *kept);

/* Nobody will have them; the segment stays.  NULL is none.  Local, without an MPI call. */
void collx_kept_close(struct collx_kept *kept);

/* Rank 0: by what is known of others (pmpi/history.h), whether it is worth setting it up now.
 * Local; may call MPI. */
bool collx_kept_expects(struct collx_comm *comm);
/* It is being set up.  All ranks; likewise. */
void collx_kept_set_up(struct collx_comm *comm);

#endif
