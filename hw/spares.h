/* Shared memory that nobody uses any more and that is still mapped, for whoever needs some next.
 *
 * To have the kernel make a segment takes as long as some thousand short calls, and half as long
 * again to have it mapped and freed, nearly all of it page by page.  A program that makes a
 * communicator, uses it for a while and frees it, over and over, has the same segment each time:
 *
 *   1. Each process that is done with a segment counts itself out of its users, and keeps it.
 *   2. Before the next one is needed each process tells the others which it has.
 *   3. Who leads takes one that is like the one it needs, that all the others have told of as well,
 *      and that nobody uses.  It counts them all as users, by an atomic operation: a process may be
 *      about to share several segments, each led by another one.
 *   4. The others take the one that they hear of, unless it has gone meanwhile, for another thread
 *      needed its room; then all do without.
 *   5. Whoever lets go of one says so in it.  Nobody can have it any more then, and its memory goes
 *      at once if it has no users: the others may have it mapped for a long time yet, and each of
 *      them counts for its own part of the memory alone (hw/budget.h).
 *
 * Nothing here is told to other processes but how many users there are, and that somebody has let
 * go; that they have the same memory they see by its cookie, which is another one each time that
 * somebody has claimed it, so that nobody takes it for what it was before.  What a process has kept
 * with it (pmpi/kept.h) is of use as long as nobody has: then all sharers have it again as it was.
 */
#ifndef COLLX_SPARES_H
#define COLLX_SPARES_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* So many are kept: libraries have a few communicators of a kind at a time. */
enum { COLLX_SPARES = 4 };

struct collx_spare {
    void *base;
    uint32_t *users; /* a word in it, zero when it is new; see hw/spares.c */
    size_t size;
    int sharers; /* processes that shared it */
    uint64_t layout;
    uint64_t cookie; /* not 0 */
    void *with; /* what this process has kept with it; whoever takes it or lets go sees to that */
};

/* Those of this process.  All functions are local and thread-safe. */
struct collx_spares {
    pthread_mutex_t lock;
    int count;
    struct collx_spare spare[COLLX_SPARES]; /* the one kept last is the last */
};
#define COLLX_SPARES_INITIALIZER                                                                   \
    {                                                                                              \
        .lock = PTHREAD_MUTEX_INITIALIZER, .count = 0, .spare = {}                                 \
    }

/* The leader says how many users a segment will have, before the others hear of it; each goes by
 * itself, and gets to know whether it may be kept: nobody has let go of it. */
void collx_spare_begin(uint32_t *users, int sharers);
bool collx_spare_leave(uint32_t *users);
/* All sharers know that all of them have it still, so nobody else can have claimed it, and are its
 * users again: the first of them says so for all, lest it has none when one has left and others
 * have yet to come.  `life`: how often they have returned, this time included, since it was
 * claimed. */
void collx_spare_return(uint32_t *users, int sharers, unsigned life);
/* This process lets go of it.  Whether nobody uses it: then its memory, but for `users`, can go at
 * once.  More than one process may hear that. */
bool collx_spare_let_go(uint32_t *users);

/* Keep one.  False: there are too many, and the oldest is in *over. */
bool collx_spares_keep(struct collx_spares *spares, const struct collx_spare *spare,
                       struct collx_spare *over);

/* Those that are here, by their cookies, and then 0. */
void collx_spares_tell(struct collx_spares *spares, uint64_t cookie[COLLX_SPARES]);

/* Whether it is one of those; 0 is never. */
bool collx_spares_include(const uint64_t cookies[COLLX_SPARES], uint64_t cookie);

/* The leader: into *wanted, which has size, sharers and layout, the latest of those in cookie[], of
 * which all sharers have told; with `any` also one that this process has kept something with.
 * False: there is none.  Give it another cookie then. */
bool collx_spares_claim(struct collx_spares *spares, const uint64_t cookie[COLLX_SPARES], bool any,
                        struct collx_spare *wanted);
/* No more can be kept. */
bool collx_spares_are_full(struct collx_spares *spares);
/* The others: the one with this cookie. */
bool collx_spares_take(struct collx_spares *spares, uint64_t cookie, struct collx_spare *taken);

/* The latest that `is` one, out of them; or, with `found` NULL, whether there is one.  `is` is
 * called with a lock held. */
bool collx_spares_find(struct collx_spares *spares,
                       bool (*is)(const struct collx_spare *spare, const void *context),
                       const void *context, struct collx_spare *found);

/* One that somebody has let go of; with `any`, else the oldest.  False: there is none. */
bool collx_spares_drop(struct collx_spares *spares, bool any, struct collx_spare *dropped);

#endif
