/* Which of several ways is the fastest, for messages of a size: the calls find out themselves.
 *
 * When calls of a size (of a power of two) have passed 256 KiB, the next ones
 *
 *   1. look: go each way in turn, some times, and are timed, from when all ranks have come to when
 *      the last one leaves.  All ranks hear all times and choose alike.
 *   2. If another way than the one so far may be faster, the two meet in a duel: more turns, and a
 *      stricter figure.  The winner is taken, unless the program, left to itself for some calls of
 *      each turn, gets on much more slowly that way.
 *
 * A way that turns out to be much slower than another is not tried on.  Much later they look again,
 * since what is fastest depends on where the ranks' CPUs are, and that may change; and a way that
 * is still the fastest has to win a duel with the first of the list, since the program may have
 * changed.  Where there is but one way, nothing is tried.
 *
 * The ways must give the same bits.
 */
#ifndef COLLX_TUNER_H
#define COLLX_TUNER_H

#include "algorithms/within/meet.h"

/* A way for calls to go. */
struct collx_way {
    const char *say; /* for messages; NULL ends a list */
    size_t least;    /* bytes of the smallest calls to try it with, a power of two; or 0 */
    unsigned burden; /* what a program pays later, in percent of the time that it takes */
    bool uncrowded;  /* not one for more ranks than CPUs */
};

enum {
    COLLX_TUNER_WAYS = 4,
    COLLX_TUNER_TURNS = 3, /* of a way, at most, some calls each */
    COLLX_TUNER_CLASSES = 16,
};

/* What a rank tells of its last try or row, in ns. */
struct collx_tuner_told {
    uint64_t begin, end;
    uint64_t between; /* of that, from the end of a row's calls to the next one */
};

/* Sizes of one power of two. */
struct collx_tuned {
    size_t passed;     /* bytes, as long as that counts */
    unsigned calls;    /* since it has settled */
    unsigned patience; /* calls until it looks again; 0: it has not settled */
    uint8_t ways;      /* that there are: bits; 0: it has not been looked */
    uint8_t way;
    uint8_t rival; /* the way that may be faster, in a duel; else `way` */
    bool looks;    /* or has a duel */
    uint8_t turn;  /* of all ways; first each has its first one, then the second, … */
    uint8_t tries; /* calls of this turn so far */
    uint8_t slow;  /* those of them, the last ones, that were far too slow */
    uint8_t row;   /* calls in a row that have begun after them, in a duel */
    uint8_t out;   /* bits of ways that were so too often to be tried on, or are none */
    uint64_t took[COLLX_TUNER_WAYS][COLLX_TUNER_TURNS]; /* ns: the best call of each turn */
    uint64_t row_took[COLLX_TUNER_WAYS];                /* ns: the best row of a duel */
    uint64_t row_between[COLLX_TUNER_WAYS];             /* ns of that, which the program had */
    struct collx_tuner_told told;
};

struct collx_tuner {
    struct collx_team *team;
    struct collx_meeting *meeting;
    const char *name;            /* of the collective */
    const struct collx_way *way; /* the list */
    unsigned allowed;            /* bits; those to choose from */
    size_t least;                /* bytes of the smallest class; no call is smaller */
    struct collx_tuned tuned[COLLX_TUNER_CLASSES];
    struct collx_tuned *trying; /* what this call is a try of; NULL: none */
};

/* Its calls choose from the list `way`, of COLLX_TUNER_WAYS at most, those whose bits are set in
 * tuner.allowed: all, unless that is changed before the first call.  `least`: a power of two.
 * Calls too small for any of these go them all the same.  `meeting` may be used for other things
 * between the calls. */
static inline void collx_tuner_init(struct collx_tuner *tuner, struct collx_team *team,
                                    struct collx_meeting *meeting, size_t least,
                                    const struct collx_way *way, const char *name)
{
    *tuner = (struct collx_tuner){
        .team = team, .meeting = meeting, .least = least, .way = way, .name = name};
    for (unsigned i = 0; way[i].say; i++)
        tuner->allowed |= 1u << i;
}

/* The way for this call of `bytes` bytes.  Collective. */
unsigned collx_tuner_begin(struct collx_tuner *tuner, size_t bytes);

/* This rank has finished the call. */
void collx_tuner_end(struct collx_tuner *tuner);

#endif
