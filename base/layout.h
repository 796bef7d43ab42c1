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

/* Bytes that lie together. */
struct collx_run {
    ptrdiff_t at;  /* from the element's address */
    size_t bytes;  /* > 0 */
    size_t before; /* bytes of the runs before it */
};

struct collx_layout {
    size_t size;      /* packed bytes of an element, > 0 */
    ptrdiff_t extent; /* from one element to the next */
    /* All runs of an element have the same length and distance from one to the next; then the first
     * is here alone. */
    bool even;
    ptrdiff_t step; /* that distance, if they have */
    size_t runs;    /* of an element, at least one */
    struct collx_run run[];
};

/* From where each of an element's packed bytes lies: [size], counted from `lowest`, which is
 * counted from the element's address.  NULL: out of memory, or these are too many runs to be worth
 * it.  To be given to free(). */
struct collx_layout *collx_layout_create(const uint16_t *offset, ptrdiff_t lowest, size_t size,
                                         ptrdiff_t extent);

/* Whether elements follow each other without gaps, from their address on, in the order in which
 * they are packed: there is nothing to pack. */
static inline bool collx_layout_is_contiguous(const struct collx_layout *layout)
{
    return layout->runs == 1 && layout->run[0].at == 0 && layout->extent == (ptrdiff_t)layout->size;
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
