/* Segments that are no longer used, while others may still repeat stores into them.
 *
 * A store that arrived may be reported as lost, and is then repeated when its reader has long gone
 * on; the reader may even have freed its communicator.  A segment that is not there any more would
 * keep the writer busy until it counts the reader as gone.  So everybody who is done writing to a
 * segment leaves a last flag there, its farewell, and a segment is unmade when all farewells have
 * come: at some later call of one of these functions, at the latest of the last one.
 */
#ifndef COLLX_SEG_RETIRED_H
#define COLLX_SEG_RETIRED_H

#include "hw/segment.h"

struct collx_seg_retired {
    struct collx_seg_retired *next;
    const struct collx_seg_ops *ops;
    struct collx_net *net;
    struct collx_export *made;
    const void *local;
    uint32_t farewell; /* what the flags say then, or more */
    int count;
    size_t flag[]; /* [count], where they are */
};

/* Hand over a segment, and the net that it is of, with all else of that net undone; allocated by
 * malloc.  Thread-safe, local. */
void collx_seg_retire(struct collx_seg_retired *retired);

/* Unmake those that can be.  Thread-safe, local.  Returns how many are left. */
int collx_seg_retired_sweep(void);

/* Nothing of this kind is used any more: unmake all, after a moment for farewells to come.  Whoever
 * is still writing finds that it is gone.  Thread-safe, local. */
void collx_seg_retired_finish(void);

#endif
