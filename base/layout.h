/* Where the bytes of elements with gaps lie, and copying between those and packed bytes.
 *
 * Packed are the bytes of one element after the other, each in the order of its type map; any part
 * of them can be had, since who passes long messages on cuts them wherever it likes.
 */
#ifndef COLLX_LAYOUT_H
#define COLLX_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Runs of bytes that lie together, all of one length and the same distance apart. */
struct collx_strip {
    ptrdiff_t at;   /* the first run, from the item's address */
    ptrdiff_t step; /* from one run to the next; 0 if there is one */
    size_t bytes;   /* of a run, > 0 */
    size_t runs;    /* > 0 */
    size_t before;  /* bytes of the strips before it */
};

/* An element is one item, or several with the same distance from each to the next one and to that
 * of the next element: so many structures in a row need not be listed one by one. */
struct collx_layout {
    size_t size;      /* packed bytes of an item */
    ptrdiff_t extent; /* from one item to the next */
    size_t items;     /* of an element, > 0 */
    size_t strips;    /* of an item */
    size_t most;      /* strips that there is room for */
    struct collx_strip *strip;
};

/* One with room for a few strips, that takes no memory of its own. */
enum { COLLX_LAYOUT_FEW = 16 };

struct collx_layout_few {
    struct collx_layout layout;
    struct collx_strip strip[COLLX_LAYOUT_FEW];
};

/* Nothing yet; what is in the room belongs to the caller.  Who adds sets extent and items. */
void collx_layout_init(struct collx_layout *layout, struct collx_strip *strip, size_t most);

/* The same with memory of its own, to be given to free().  NULL: out of memory. */
struct collx_layout *collx_layout_create(size_t most);

/* A copy with no more room than it needs, to be given to free().  NULL: out of memory. */
struct collx_layout *collx_layout_copy(const struct collx_layout *layout);

/* Runs that are packed after all that are there.  False: no room for them, and what is there now is
 * of no use. */
bool collx_layout_add(struct collx_layout *layout, ptrdiff_t at, size_t bytes, ptrdiff_t step,
                      size_t runs);

/* Likewise `count` blocks, from `at` on and `step` apart, each of so many elements of the other
 * layout. */
bool collx_layout_add_blocks(struct collx_layout *layout, const struct collx_layout *element,
                             ptrdiff_t at, size_t elements, ptrdiff_t step, size_t count);

/* Make an element of so many that there are now. */
void collx_layout_repeat(struct collx_layout *layout, size_t count);

/* Whether elements follow each other without gaps, from their address on, in the order in which
 * they are packed: there is nothing to pack. */
static inline bool collx_layout_is_contiguous(const struct collx_layout *layout)
{
    return layout->strips == 1 && layout->strip[0].runs == 1 && layout->strip[0].at == 0 &&
           layout->extent == (ptrdiff_t)layout->size;
}

/* How far it is from one element to so many after it. */
static inline ptrdiff_t collx_layout_distance(const struct collx_layout *layout, int64_t count)
{
    return (ptrdiff_t)count * (ptrdiff_t)layout->items * layout->extent;
}

/* Whether all of so many elements' memory may be read, gaps and all: no gap is as long as a page,
 * so there is none without an element's byte.  Then *first is where it begins, from their address,
 * and *bytes how long it is. */
bool collx_layout_spans(const struct collx_layout *layout, size_t count, ptrdiff_t *first,
                        size_t *bytes);

/* Of the elements that begin at `buf`: `bytes` packed bytes, from the `first`-th on. */
void collx_layout_pack(const struct collx_layout *layout, const void *buf, size_t first,
                       size_t bytes, void *packed);
void collx_layout_unpack(const struct collx_layout *layout, const void *packed, void *buf,
                         size_t first, size_t bytes);

#endif
