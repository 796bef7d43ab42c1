/* Single copy: ranks of a node read each other's buffers where they are (hw/cma.h).
 *
 * In a call that goes this way each rank
 *   1. opens its buffers: tells where they are;
 *   2. reads from those of others, which wait until it has;
 *   3. counts its steps, so that others know what they may read, and when all is over.
 * A rank does not leave the call before everybody who may read from it has taken the last step.
 *
 * What the kernel does not let a rank read goes by mail: the reader asks the owner, who looks for
 * such letters whenever it waits for long, and copies what is asked for into the reader's mailbox.
 * So a read cannot fail, whatever kind of memory a program hands us.
 */
#ifndef COLLX_SINGLE_H
#define COLLX_SINGLE_H

#include "algorithms/wait.h"

enum { COLLX_MAIL = 4096 };

/* Linux has no more processes, so a node no more ranks.  What remains for the number of a letter
 * does not run out. */
enum { COLLX_OWNER_BITS = 22 };

/* What a rank tells of itself when it opens its buffers: addresses in its own address space; 0: it
 * has no memory for what should be there. */
struct collx_view {
    int64_t pid;
    uint64_t send, receive;
};

/* What a reader asks for. */
struct collx_letter {
    uint64_t address, bytes;
};

/* One rank's part of the segment.  The owner of the part writes its lines, except where noted. */
struct collx_single_part {
    struct collx_flag open; /* calls so far; beside it the struct collx_view */
    struct collx_flag step; /* steps so far */
    /* Letters so far, and in the low COLLX_OWNER_BITS the rank that the last one is for; beside it
     * the struct collx_letter.  For whom it is has to be in the number: nobody else may look at the
     * letter. */
    struct collx_flag letter;
    struct collx_flag answer; /* letters answered; written by whoever was asked */
    /* For bcast_single.c.  Others write into these two lines, too. */
    struct collx_flag helped;                            /* chunks that helpers have done */
    _Alignas(COLLX_LINE) _Atomic uint64_t taken;         /* chunks */
    _Atomic uint64_t unwritten;                          /* in what call a helper could not write */
    _Alignas(COLLX_LINE) _Atomic int32_t helps;          /* 1 + whom the owner helps; 0: nobody */
    _Alignas(COLLX_LINE) unsigned char mail[COLLX_MAIL]; /* written by whoever was asked */
};
_Static_assert(sizeof(struct collx_view) <= COLLX_INLINE, "it travels beside a flag");
_Static_assert(sizeof(struct collx_letter) <= COLLX_INLINE, "it travels beside a flag");
_Static_assert(sizeof(struct collx_single_part) == 7 * COLLX_LINE + COLLX_MAIL,
               "nothing but whole lines");

struct collx_single {
    struct collx_team *team;
    struct collx_single_part *part; /* [size] */
    const char *name;
    int64_t pid;
    uint64_t call, step;
    uint64_t letters; /* that we have written */
};

static inline size_t collx_single_space(int ranks)
{
    return (size_t)ranks * sizeof(struct collx_single_part);
}

/* `memory`: collx_single_space() bytes, the same on all ranks, zeroed.  `name`: of the collective.
 */
void collx_single_init(struct collx_single *single, struct collx_team *team, void *memory,
                       const char *name);

/* 1.  Begins a call. */
void collx_single_open(struct collx_single *single, const void *send, const void *receive);

/* What `rank` opened in this call; waits for it. */
const struct collx_view *collx_single_view(struct collx_single *single, int rank);

/* 2.  `bytes` bytes from `address` of `owner`, which is in this call and keeps them as they are.
 * Returns 0, or collx_lender_ops.no_memory where that was 0. */
int collx_single_read(struct collx_single *single, int owner, void *to, uint64_t address,
                      size_t bytes);

/* 3. */
static inline void collx_single_step(struct collx_single *single)
{
    collx_flag_post(single->team, &single->part[single->team->rank].step, ++single->step);
}

/* Wait until `rank` has taken as many steps as we have; answers letters meanwhile. */
void collx_single_await(struct collx_single *single, int rank);
void collx_single_await_all(struct collx_single *single);

/* Wait for another flag of `rank`, likewise, or for those who help us. */
enum { COLLX_SINGLE_HELPER = -1 };
void collx_single_wait(struct collx_single *single, struct collx_flag *flag, uint64_t value,
                       int rank);

#endif
