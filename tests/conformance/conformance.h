/* What the conformance tests share.
 *
 * Every call that is tested is checked against values that a rank computes for itself, with the
 * MPI library's own MPI_Reduce_local where something is reduced; a sample is also compared with the
 * library's own collective.  (That one can take long with more ranks than cores, so it cannot be
 * asked every time.)  All ranks are on one node: they compare notes through a shared window, which
 * has the advantage that no collective of the test itself can hide a fault of the one tested.
 */
#ifndef COLLX_TESTS_CONFORMANCE_H
#define COLLX_TESTS_CONFORMANCE_H

#include <mpi.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CF_RANKS_MAX = 16,
    CF_GUARD = 64,         /* bytes around every buffer that nobody may touch */
    CF_DATA_MAX = 6 << 20, /* bytes of data that a case may have */
    CF_ARENA = 14 << 20,   /* bytes of a buffer with its gaps and guards */
};

/* The MPI library's own functions, taken from its own handle: never collx. */
struct cf_library {
    int (*barrier)(MPI_Comm);
    int (*bcast)(void *, int, MPI_Datatype, int, MPI_Comm);
    int (*allreduce)(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);
    int (*reduce_local)(const void *, void *, int, MPI_Datatype, MPI_Op);
#if MPI_VERSION >= 4
    int (*bcast_c)(void *, MPI_Count, MPI_Datatype, int, MPI_Comm);
    int (*allreduce_c)(const void *, void *, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm);
#endif
};

extern struct cf_library cf_library;
extern int cf_rank, cf_size; /* in MPI_COMM_WORLD */
extern bool cf_quick;        /* each collective takes long: fewer cases */
extern bool cf_in_part;      /* this algorithm is tested in full in another form */
extern bool cf_routed;       /* collx is there; else the library is tested against itself */

/* --- harness.c ------------------------------------------------------------------------------ */

void cf_harness_init(void);
void cf_harness_finish(void);

/* Much of it, zeroed, where malloc would take long: with MALLOC_PERTURB_ that writes to all of it,
 * and each small page takes a fault. */
void *cf_memory(size_t size);
void cf_memory_free(void *memory, size_t size);

/* One area: its cases are counted, and rank 0 prints one line about all ranks at its end. */
void cf_area_begin(const char *name, int seconds_at_most);
/* Returns the failures of all ranks. */
int cf_area_end(void);

/* What is being tried now, for messages; counts a case. */
void cf_case(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The present case failed on this rank. */
void cf_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* MPI returned this; anything but MPI_SUCCESS is a failure. */
bool cf_ok(int rc);

/* All ranks wait for each other, without MPI. */
void cf_sync(void);
/* All ranks call this for the same case; reports it if they do not give the same hash.  The
 * comparison itself waits until many have come together, or cf_same_flush(). */
void cf_same(uint64_t hash);
void cf_same_flush(void);
/* Whether this rank is the one that works out what has to come of this case: where cf_same() tells
 * that all got the same, one is enough.  The MPI library's own results may differ. */
bool cf_turn(uint64_t seed);
/* A word that a rank shows to all: for proofs of who was where. */
void cf_show(int board, uint64_t value);
uint64_t cf_seen(int board, int rank);
enum { CF_BOARDS = 8 };

/* Whether this case is to be compared with the library's own collective too. */
bool cf_sampled(void);

/* With many ranks a case takes long: each case of a large family is tried with one number of 5
 * to 9. */
bool cf_left_out(uint64_t seed);
/* With --in-part, this case of so many bytes is not tried: two thirds of the short ones, others
 * with each number of ranks. */
bool cf_left_out_in_part(uint64_t seed, int64_t bytes);

/* A communicator that collx has set up: it waits until it has been used before it does. */
void cf_warm_up(MPI_Comm comm);
MPI_Comm cf_world_dup(void);

/* Random numbers; the same seed gives the same ones on all ranks. */
struct cf_random {
    uint64_t state;
};
uint64_t cf_random_next(struct cf_random *random);
uint64_t cf_random_below(struct cf_random *random, uint64_t limit);
uint64_t cf_hash(uint64_t hash, const void *data, size_t size);

/* CF_DATA_MAX random bytes, the same on all ranks; different for each seed and rank. */
const unsigned char *cf_stream(uint64_t seed, int rank);

/* Sizes in bytes around which implementations change their ways. */
extern const int64_t cf_sizes[];
extern const size_t cf_sizes_count;

/* --- types.c -------------------------------------------------------------------------------- */

enum cf_kind {
    CF_I8,
    CF_I16,
    CF_I32,
    CF_I64,
    CF_U8,
    CF_U16,
    CF_U32,
    CF_U64,
    CF_F32,
    CF_F64,
    CF_F80,
    CF_C32,
    CF_C64,
    CF_C80, /* complex of two of these */
    CF_BOOL,
    CF_BYTE,
    CF_LOGICAL,
    CF_F32_INT,
    CF_F64_INT,
    CF_I64_INT,
    CF_I32_INT,
    CF_I16_INT,
    CF_F80_INT,
    CF_F32_F32,
    CF_F64_F64,
};

/* `size` bytes of data at `at`, relative to an element's address. */
struct cf_piece {
    ptrdiff_t at;
    size_t size;
};

/* A datatype, and where its data lie, found out without asking MPI. */
struct cf_type {
    char name[48];
    MPI_Datatype handle;
    enum cf_kind kind; /* of a basic type */
    ptrdiff_t extent;
    size_t size; /* bytes of data in one element */
    size_t pieces;
    struct cf_piece *piece; /* in type-map order */
    bool derived;           /* ours to free */
};

/* The basic types that this MPI has; C first, then Fortran. */
extern struct cf_type *cf_basic;
extern size_t cf_basic_count;
const struct cf_type *cf_basic_find(MPI_Datatype handle);

/* Derived types of all sorts. */
extern struct cf_type *cf_derived;
extern size_t cf_derived_count;

void cf_types_init(void);
void cf_types_finish(void);

/* `count` times `old`, at multiples of its extent. */
struct cf_type cf_type_contiguous(const struct cf_type *old, int count);
/* `count` times `old` at an absolute address, for use with MPI_BOTTOM; the caller frees it. */
MPI_Datatype cf_type_absolute(const struct cf_type *old, const void *address, int count);
void cf_type_free(struct cf_type *type);

/* A buffer for `count` elements, with guards on both sides. */
struct cf_buffer {
    unsigned char *start; /* of the front guard */
    size_t total;         /* bytes with guards and gaps */
    unsigned char *data;  /* what to hand to MPI */
    const struct cf_type *type;
    int64_t count;
};

/* Arenas are reused: one buffer of each at a time. */
enum cf_arena { CF_SEND, CF_RECEIVE, CF_EXPECT, CF_REFERENCE, CF_ARENAS };

/* Laid out alike for the same type, count and shift, and filled with the same background. */
struct cf_buffer cf_buffer_make(enum cf_arena arena, const struct cf_type *type, int64_t count,
                                unsigned shift);
/* Where data begin and end, relative to the buffer's address; that counts as the data's, too. */
void cf_buffer_span(const struct cf_type *type, int64_t count, ptrdiff_t *first, ptrdiff_t *end);
/* Put data, in type-map order, into the buffer, and get them out of it. */
void cf_buffer_put(const struct cf_buffer *buffer, const void *data);
void cf_buffer_get(const struct cf_buffer *buffer, void *data);
/* Byte by byte, guards and gaps included.  Reports the first that differs, as the present case's
 * failure; `what` says which buffer this is. */
bool cf_buffer_equal(const struct cf_buffer *got, const struct cf_buffer *expected,
                     const char *what);

/* --- values.c ------------------------------------------------------------------------------- */

struct cf_op {
    const char *name;
    MPI_Op handle;
    enum cf_op_kind {
        CF_MAX,
        CF_MIN,
        CF_SUM,
        CF_PROD,
        CF_LAND,
        CF_BAND,
        CF_LOR,
        CF_BOR,
        CF_LXOR,
        CF_BXOR,
        CF_MAXLOC,
        CF_MINLOC,
        CF_OPS,
    } kind;
};

extern struct cf_op cf_op[CF_OPS];

void cf_values_init(void);

/* Whether this MPI reduces this type with this op. */
bool cf_op_allowed(const struct cf_op *op, const struct cf_type *type);

/* What this rank contributes: `count` elements of a basic type, one after the other.  All results
 * can be represented exactly, in whatever order they are combined. */
void cf_values(const struct cf_type *type, const struct cf_op *op, void *elements, int64_t count,
               uint64_t seed, int rank);
/* inout = in op inout, by the library's own kernel unless that is known to be wrong. */
void cf_values_reduce(const struct cf_type *type, const struct cf_op *op, const void *in,
                      void *inout, int64_t count);
/* The library's own results are wrong for some values of this type. */
bool cf_library_errs(const struct cf_type *type, const struct cf_op *op);
/* Elements of a basic type into a buffer; what lies between their parts stays out of it. */
void cf_values_put(const struct cf_buffer *buffer, const void *elements);
/* Clear what does not count: the unused bytes of an x87 number; the sign of zeros. */
void cf_values_clear_padding(const struct cf_buffer *buffer);
void cf_values_clear_signs(const struct cf_buffer *buffer);

/* --- the areas ------------------------------------------------------------------------------ */

void cf_test_barrier(void);
void cf_test_bcast(void);
void cf_test_allreduce(void);
void cf_test_allreduce_user(void);
void cf_test_floats(void);
void cf_test_halves(void);
void cf_test_progress(void);
void cf_test_mixes(void);
void cf_test_threads(void);
void cf_test_errors(void);
void cf_test_intercomm(void);
void cf_test_routes(void);

#endif
