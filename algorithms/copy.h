/* Copying into shared memory that other ranks will read next.
 *
 * The lines are still in the readers' caches, so a plain store first has to fetch them back.
 * Between CPUs that share a cache that is cheap, and the data stays where the reader finds it.
 * Between CPUs far apart it costs ten times the copy; then it is better to store past the caches.
 * How far apart they are changes on machines that move processes, or whole virtual machines, about,
 * so now and then a copy is timed.  Each rank decides for itself: where its stores go is nobody
 * else's business.
 */
#ifndef COLLX_COPY_H
#define COLLX_COPY_H

#include <stddef.h>

/* What one rank has found out; starts as zeros. */
struct collx_copier {
    unsigned copies;    /* large ones so far */
    unsigned slow;      /* timed ones in a row that were slow */
    unsigned streaming; /* copies that go past the caches before plain ones are tried again */
};

/* The flag that is posted afterwards orders the copy: it ends with a store fence where it needs
 * one. Any alignment. */
void collx_copy_in(struct collx_copier *copier, void *shared, const void *from, size_t bytes);

#endif
