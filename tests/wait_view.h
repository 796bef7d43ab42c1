/* A rank that waits, for C++. */
#ifndef COLLX_TESTS_WAIT_VIEW_H
#define COLLX_TESTS_WAIT_VIEW_H

#include "base/algorithm.h"

/* How often it looks for what it waits for before it yields its CPU.  `missing`, and `behind` in
 * what they have to do: bits of ranks.  `after_it`: those that are waited for after that, or NULL.
 */
int wait_looks(struct collx_team *team, unsigned missing, unsigned behind, const int after_it[3],
               bool relayed);

/* How often it yields, where that has come at the look of this number. */
int wait_yields(struct collx_team *team, unsigned missing, int come);

/* How often it sleeps, where that comes after so many milliseconds, or when it has slept ten
 * times. */
int wait_sleeps(struct collx_team *team, int ms);

/* How often it yields before it sleeps, and for how many milliseconds. */
int wait_yields_awake(struct collx_team *team, int *ms);

/* How often it yields between the first ten times that it sleeps. */
int wait_yields_between(struct collx_team *team);

#endif
