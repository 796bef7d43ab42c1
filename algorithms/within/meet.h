/* All ranks tell each other something small, in one round of flags.
 *
 * What a rank tells lies beside its flag, in one of two lines in turn.  Two are enough: who tells
 * in round r has been told by everybody in round r - 1, so everybody has finished with round r - 2.
 */
#ifndef COLLX_MEET_H
#define COLLX_MEET_H

#include "algorithms/wait.h"

#include <string.h>

struct collx_meeting {
    struct collx_flag (*line)[2]; /* [size], in shared memory */
    uint64_t round;
};

static inline size_t collx_meeting_space(int ranks)
{
    return (size_t)ranks * 2 * sizeof(struct collx_flag);
}

/* `memory`: collx_meeting_space() bytes, the same on all ranks, zeroed. */
static inline void collx_meeting_init(struct collx_meeting *meeting, void *memory)
{
    *meeting = (struct collx_meeting){.line = memory};
}

/* Tell `bytes` bytes, COLLX_INLINE at most, and wait until all have told theirs.  Collective.
 * `name`: of the collective, for messages. */
static inline void collx_meet(struct collx_team *team, struct collx_meeting *meeting,
                              const void *word, size_t bytes, const char *name)
{
    uint64_t round = ++meeting->round;
    struct collx_flag *own = &meeting->line[team->rank][round & 1];

    memcpy(own->payload, word, bytes);
    collx_flag_post(team, own, round);
    collx_wait_others(team, &meeting->line[0][round & 1], sizeof *meeting->line, round, name);
}

/* What `rank` told in the last round; until the next. */
static inline const void *collx_meeting_word(const struct collx_meeting *meeting, int rank)
{
    return meeting->line[rank][meeting->round & 1].payload;
}

#endif
