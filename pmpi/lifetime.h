/* Who has MPI open: MPI_COMM_WORLD and the sessions, which begin and end on any thread.
 *
 * What collx has of MPI for itself goes before the last of them ends, and what it knows of
 * communicators after that.  One that begins meanwhile, on another thread, keeps what it finds, or
 * comes when all has gone.
 */
#ifndef COLLX_LIFETIME_H
#define COLLX_LIFETIME_H

#include <stdbool.h>

/* A session is open.  Local. */
bool collx_sessions_any(void);

/* Whether MPI_COMM_WORLD, or a session, can be used, and is not about to end.  Local. */
bool collx_is_open(void);

/* Communicators are set up in this process.  What they have together with other ranks is its own: a
 * child that it forks has none of it mapped, and is not heard by the others, but would be taken for
 * its parent.  So that forgets it, when it frees a communicator as libraries may do at exit. Local.
 */
void collx_process_keep(void);
bool collx_process_is_child(void);

/* Whether MPI_COMM_WORLD can be used, and collx will hear of its end: it has come up by collx.
 * Local. */
bool collx_world_is_known(void);

/* MPI_Init has gone well, or MPI_Session_init.  Before anything is set up for it.  Local. */
void collx_world_begun(void);
void collx_session_begun(void);

/* MPI_Finalize is about to be called, or MPI_Session_finalize.  Local. */
void collx_world_ending(void);
void collx_session_ending(void);
/* And has returned; where a session could not be ended it has begun again before.  Local. */
void collx_ended(void);

#endif
