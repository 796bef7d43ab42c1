/* One collective call, described without MPI, and the slots that carry it out. */
#ifndef COLLX_CALL_H
#define COLLX_CALL_H

#include "base/collectives.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct collx_layout; /* base/layout.h */
struct collx_slot;

/* What the basic elements of a buffer are, as far as a reduction kernel has to know. */
enum collx_elem {
    COLLX_ELEM_NONE, /* not a basic type, or one that no kernel of ours adds up */
    COLLX_ELEM_I8,
    COLLX_ELEM_I16,
    COLLX_ELEM_I32,
    COLLX_ELEM_I64,
    COLLX_ELEM_U8,
    COLLX_ELEM_U16,
    COLLX_ELEM_U32,
    COLLX_ELEM_U64,
    COLLX_ELEM_F16,  /* IEEE 754 binary16 */
    COLLX_ELEM_BF16, /* the upper half of a float */
    COLLX_ELEM_F32,
    COLLX_ELEM_F64,
    COLLX_ELEM_C64, /* two floats: a complex number */
    COLLX_ELEM_C128,
    /* A value and where it is, an int or the same type: for MINLOC and MAXLOC.  Packed. */
    COLLX_ELEM_I16_INT,
    COLLX_ELEM_I32_INT,
    COLLX_ELEM_I64_INT,
    COLLX_ELEM_F32_INT,
    COLLX_ELEM_F64_INT,
    COLLX_ELEM_2F32,
    COLLX_ELEM_2F64,
    COLLX_ELEMS,
};

/* result[i] = left[i] op right[i] for `count` elements; any alignment.  `result` may be the very
 * same buffer as `left` or `right`, else it overlaps neither.  `left` comes from the lower ranks.
 */
typedef void collx_reduce_fn(const void *left, const void *right, void *result, size_t count);

/* A call on its way through the slots.  MPI's own handles travel as machine words: whoever is not
 * the adapter hands them back to struct collx_lender_ops and never looks inside.
 *
 * The first block is what the caller passed and is always there; the second is filled in by the
 * adapter's selecting slot and is valid in an algorithm's run(). */
struct collx_call {
    const void
        *sbuf; /* what to send; for Allreduce in place this is rbuf, for Bcast at the root too */
    void *rbuf;
    int64_t count;
    uintptr_t datatype, op, comm;
    int root;
    bool large; /* came through the large-count twin, MPI_X_c */

    uint8_t route;   /* out: 0 the MPI library, else 1 + index in collx_algorithms */
    uint8_t reason;  /* out: enum collx_reason (trace/recorder.h) */
    bool contiguous; /* the buffer is `bytes` bytes in type-map order: no pack, no unpack */
    const struct collx_layout
        *layout;             /* of elements that have gaps, NULL: use collx_lender_ops.pack */
    enum collx_op op_kind;   /* of an Allreduce */
    size_t bytes;            /* size of the type signature, equal on all ranks */
    size_t elem_bytes;       /* size of one datatype element; bytes == count * elem_bytes */
    collx_reduce_fn *reduce; /* kernel for this op and type, or NULL: use collx_lender_ops.reduce */
    /* The operation may count on getting all elements at once: whoever cannot give it that does not
     * take the call. */
    bool whole;
};

/* What a communicator does for one collective.  run() carries the call out and returns the MPI
 * error code for the caller; it may replace itself in the communicator (when setup is done). Called
 * by one thread at a time per communicator: MPI demands that of the caller. */
struct collx_slot {
    int (*run)(struct collx_slot *slot, struct collx_call *call);
    void *state;
};

#endif
