/* What communicators have been used for, and what that says about the next ones of their kind.
 *
 * A setup is worth thousands of calls, and nobody knows beforehand how many a communicator will
 * make. But a program that makes one, uses it and frees it is likely to do so again: so the calls
 * of all communicators of a kind, one after the other, count for it together, and as many as the
 * last one has made are expected of the next one.  And where a freed one has left its routes
 * (pmpi/kept.h), to take them over is worth a few dozen calls.
 *
 * What comes of this has to be the same in every run, as the order of combination changes with a
 * setup.  So there is only in it what follows from the program: not what goes because another rank
 * has let go of it, or memory is needed, which may be sooner or later.  And it is for processes of
 * which a single thread calls MPI.
 */
#ifndef COLLX_HISTORY_H
#define COLLX_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

/* One that is told apart from others by `key` has been freed, after so many calls.  It may have
 * been set up, and may have left its routes. */
void collx_history_freed(uint64_t key, uint64_t calls, bool was_set_up, bool has_left);

/* One has been set up: by what another one has left, if any has; else from nothing. */
void collx_history_set_up(uint64_t key);

/* Whether one that has made `calls` calls should be set up now, where one of which nothing is known
 * is after `usual` calls. */
bool collx_history_expects(uint64_t key, uint64_t calls, uint64_t usual);

/* Whether anything is known of any. */
bool collx_history_any(void);

#endif
