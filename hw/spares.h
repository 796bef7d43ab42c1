/* Shared memory that nobody uses any more and that is still mapped, for whoever needs some next.
 *
 * To have the kernel make a segment takes as long as some thousand short calls, and half as long
 * again to have it mapped and freed, nearly all of it page by page.  A program that makes a
 * communicator, uses it for a while and frees it, over and over, has the same segment each time:
 *
 *   1. Each process that is done with a segment counts itself out of its users, and keeps it.
 *   2. Before the next one is needed each process tells the others which it has, and keeps those
 *      until it has heard what became of them.
 *   3. Who leads takes one that is like the one it needs, that all the others have as well, and
 *      that nobody uses.  It counts them all as users, by an atomic operation: a process may be
 *      about to share several segments, each led by another one.
 *   4. The others take the one that they hear of.
 *
 * Nothing here is told to other processes but the users' number; that they have the same memory
 * they see by the cookie that it has since it was made.
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
    size_t size;
    int sharers; /* processes that shared it */
    uint64_t layout;
    uint64_t cookie; /* not 0 */
};

/* Those of this process.  All functions are local and thread-safe. */
struct collx_spares {
    pthread_mutex_t lock;
    int offers; /* that are not over */
    int count;
    struct collx_spare spare[COLLX_SPARES]; /* the one kept last is the last */
};
#define COLLX_SPARES_INITIALIZER                                                                   \
    {                                                                                              \
        .lock = PTHREAD_MUTEX_INITIALIZER, .offers = 0, .count = 0, .spare = {}                    \
    }

/* Every user of a segment is counted in a word in it, zero when it is new.  The leader says how
 * many there will be, before the others hear of it; each goes by itself. */
void collx_spare_begin(uint32_t *users, int sharers);
void collx_spare_leave(uint32_t *users);

/* Keep one.  False: *over, this one or an older one, has to go in its place. */
bool collx_spares_keep(struct collx_spares *spares, const struct collx_spare *spare,
                       struct collx_spare *over);

/* Those that are here, by their cookies, and then 0; they stay until collx_spares_offered(). */
void collx_spares_offer(struct collx_spares *spares, uint64_t cookie[COLLX_SPARES]);
void collx_spares_offered(struct collx_spares *spares);

/* Whether it is one of those; 0 is never. */
bool collx_spares_include(const uint64_t cookies[COLLX_SPARES], uint64_t cookie);

/* The leader: into *wanted, which says all but base and cookie, the latest of those in cookie[],
 * which all sharers have offered.  Their users are counted from `users` bytes on.  False: there is
 * none. */
bool collx_spares_claim(struct collx_spares *spares, const uint64_t cookie[COLLX_SPARES],
                        size_t users, struct collx_spare *wanted);
/* The others: the one with this cookie. */
bool collx_spares_take(struct collx_spares *spares, uint64_t cookie, struct collx_spare *taken);

/* Let go of the oldest.  False: there is none, or it has been offered. */
bool collx_spares_drop(struct collx_spares *spares, struct collx_spare *dropped);

#endif
