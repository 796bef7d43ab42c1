#include "pmpi/types.h"

#include "pmpi/progress.h"

#include <pthread.h>
#include <stdatomic.h>

#if defined(OPEN_MPI) && __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif

#define OP(name) (1u << COLLX_OP_##name)

/* The classes of MPI 4.0, section 6.9.2, and the operations that each allows. */
enum {
    ORDERED = OP(MIN) | OP(MAX) | OP(SUM) | OP(PROD),
    LOGICAL_OPS = OP(LAND) | OP(LOR) | OP(LXOR),
    BITWISE = OP(BAND) | OP(BOR) | OP(BXOR),

    C_INTEGER = ORDERED | LOGICAL_OPS | BITWISE,
    FORTRAN_INTEGER = ORDERED | BITWISE,
    FLOATING = ORDERED,
    COMPLEX = OP(SUM) | OP(PROD),
    LOGICAL = LOGICAL_OPS,
    BYTE = BITWISE,
    MULTI_LANGUAGE = ORDERED | BITWISE,
    PAIR = OP(MINLOC) | OP(MAXLOC),
    NOTHING = 0,
};

/* What numbers a type is of; how long they are has to be asked for: what MPI_INTEGER and MPI_REAL
 * are depends on how the Fortran of this MPI library was built. */
enum numbers {
    OTHER,
    SIGNED,
    UNSIGNED,
    REAL,
    FLOAT16,
    BFLOAT16,
    TWO_REALS,
    INT_PAIR,
    REAL_PAIR,
    TWICE
};

/* COLLX_ELEM_NONE: no kernel of ours knows them, so MPI reduces them. */
static enum collx_elem elem_of(enum numbers numbers, MPI_Count size)
{
    enum { LONGEST = 16 };
    static const enum collx_elem elems[][LONGEST + 1] = {
        [SIGNED] =
            {[1] = COLLX_ELEM_I8, [2] = COLLX_ELEM_I16, [4] = COLLX_ELEM_I32, [8] = COLLX_ELEM_I64},
        [UNSIGNED] =
            {[1] = COLLX_ELEM_U8, [2] = COLLX_ELEM_U16, [4] = COLLX_ELEM_U32, [8] = COLLX_ELEM_U64},
        [REAL] = {[4] = COLLX_ELEM_F32, [8] = COLLX_ELEM_F64},
        [FLOAT16] = {[2] = COLLX_ELEM_F16},
        [BFLOAT16] = {[2] = COLLX_ELEM_BF16},
        /* A value and an int; and two values. */
        [INT_PAIR] =
            {[6] = COLLX_ELEM_I16_INT, [8] = COLLX_ELEM_I32_INT, [12] = COLLX_ELEM_I64_INT},
        [REAL_PAIR] = {[8] = COLLX_ELEM_F32_INT, [12] = COLLX_ELEM_F64_INT},
        [TWICE] = {[8] = COLLX_ELEM_2F32, [16] = COLLX_ELEM_2F64},
        [TWO_REALS] = {[8] = COLLX_ELEM_C64, [16] = COLLX_ELEM_C128},
    };

    return size >= 0 && size <= LONGEST ? elems[numbers][size] : COLLX_ELEM_NONE;
}

/* A table of handles that is filled once and then only read: open addressing, load below 1/4.  What
 * is to be known of a type is asked when the program first uses it: the library of the process may
 * be older than the mpi.h here, and one that does not check what it is asked aborts on a handle
 * that it does not know. */
enum { TABLE = 512 };
enum { NOT_YET, IS_THERE, IS_NOT_THERE };
static struct named {
    struct collx_datatype type;
    uint8_t numbers; /* enum numbers */
    _Atomic uint8_t asked;
} named[TABLE];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static unsigned place(uintptr_t handle)
{
    return (unsigned)((handle * 0x9e3779b97f4a7c15u) >> 55);
}
_Static_assert(TABLE == 1 << (64 - 55), "place() yields an index into the table");

/* Where it is, or belongs. */
static struct named *find(uintptr_t handle)
{
    unsigned i = place(handle);

    while (named[i].type.handle && named[i].type.handle != handle)
        i = (i + 1) % TABLE;
    return &named[i];
}

static void add(MPI_Datatype datatype, uint32_t ops, enum numbers numbers)
{
    struct named *type = find((uintptr_t)datatype);

    /* An MPI library without Fortran has MPI_DATATYPE_NULL for Fortran's types, and two names may
     * be one type. */
    if (datatype == MPI_DATATYPE_NULL || type->type.handle)
        return;
    type->type.handle = (uintptr_t)datatype;
    type->type.ops = ops;
    type->numbers = (uint8_t)numbers;
}

/* MPI is not asked under the lock: the program's error handler may never come back. */
static __attribute__((noinline)) void look_at(struct named *type)
{
    const MPI_Datatype datatype = (MPI_Datatype)type->type.handle;
    const bool half = type->numbers == FLOAT16 || type->numbers == BFLOAT16;
    MPI_Aint lb = 0, extent = 0;
    MPI_Count size = 0;
    const bool known = !pmpi.Type_size_x(datatype, &size) &&
                       !pmpi.Type_get_extent(datatype, &lb, &extent) && (!half || size == 2);

    pthread_mutex_lock(&lock);
    if (atomic_load_explicit(&type->asked, memory_order_relaxed) == NOT_YET) {
        type->type.size = size;
        type->type.elem = (uint8_t)elem_of(type->numbers, size);
        type->type.contiguous = lb == 0 && extent == size;
        type->type.extension = half;
        /* Release: pairs with the acquire below, which would find a type of no bytes. */
        atomic_store_explicit(&type->asked, known ? IS_THERE : IS_NOT_THERE, memory_order_release);
    }
    pthread_mutex_unlock(&lock);
}

const struct collx_datatype *collx_datatype_predefined(MPI_Datatype datatype)
{
    struct named *type = find((uintptr_t)datatype);

    if (!type->type.handle)
        return NULL;
    /* Acquire: pairs with the release above. */
    if (__builtin_expect(atomic_load_explicit(&type->asked, memory_order_acquire) == NOT_YET, 0))
        look_at(type);
    return atomic_load_explicit(&type->asked, memory_order_relaxed) == IS_THERE ? &type->type
                                                                                : NULL;
}

void collx_types_init(void)
{
    add(MPI_CHAR, NOTHING, OTHER);
    add(MPI_WCHAR, NOTHING, OTHER);
    add(MPI_PACKED, NOTHING, OTHER);
    add(MPI_BYTE, BYTE, UNSIGNED);

    add(MPI_SIGNED_CHAR, C_INTEGER, SIGNED);
    add(MPI_SHORT, C_INTEGER, SIGNED);
    add(MPI_INT, C_INTEGER, SIGNED);
    add(MPI_LONG, C_INTEGER, SIGNED);
    add(MPI_LONG_LONG, C_INTEGER, SIGNED);
    add(MPI_UNSIGNED_CHAR, C_INTEGER, UNSIGNED);
    add(MPI_UNSIGNED_SHORT, C_INTEGER, UNSIGNED);
    add(MPI_UNSIGNED, C_INTEGER, UNSIGNED);
    add(MPI_UNSIGNED_LONG, C_INTEGER, UNSIGNED);
    add(MPI_UNSIGNED_LONG_LONG, C_INTEGER, UNSIGNED);
    add(MPI_INT8_T, C_INTEGER, SIGNED);
    add(MPI_INT16_T, C_INTEGER, SIGNED);
    add(MPI_INT32_T, C_INTEGER, SIGNED);
    add(MPI_INT64_T, C_INTEGER, SIGNED);
    add(MPI_UINT8_T, C_INTEGER, UNSIGNED);
    add(MPI_UINT16_T, C_INTEGER, UNSIGNED);
    add(MPI_UINT32_T, C_INTEGER, UNSIGNED);
    add(MPI_UINT64_T, C_INTEGER, UNSIGNED);
    add(MPI_AINT, MULTI_LANGUAGE, SIGNED);
    add(MPI_OFFSET, MULTI_LANGUAGE, SIGNED);
    add(MPI_COUNT, MULTI_LANGUAGE, SIGNED);

    add(MPI_FLOAT, FLOATING, REAL);
    add(MPI_DOUBLE, FLOATING, REAL);
    add(MPI_LONG_DOUBLE, FLOATING, REAL);
    add(MPI_C_BOOL, LOGICAL, OTHER);
    add(MPI_C_FLOAT_COMPLEX, COMPLEX, TWO_REALS);
    add(MPI_C_DOUBLE_COMPLEX, COMPLEX, TWO_REALS);
    add(MPI_C_LONG_DOUBLE_COMPLEX, COMPLEX, TWO_REALS);

    add(MPI_FLOAT_INT, PAIR, REAL_PAIR);
    add(MPI_DOUBLE_INT, PAIR, REAL_PAIR);
    add(MPI_LONG_INT, PAIR, INT_PAIR);
    add(MPI_2INT, PAIR, INT_PAIR);
    add(MPI_SHORT_INT, PAIR, INT_PAIR);
    add(MPI_LONG_DOUBLE_INT, PAIR, OTHER);

    add(MPI_CHARACTER, NOTHING, OTHER);
    add(MPI_LOGICAL, LOGICAL, OTHER);
    add(MPI_INTEGER, FORTRAN_INTEGER, SIGNED);
    add(MPI_REAL, FLOATING, REAL);
    add(MPI_DOUBLE_PRECISION, FLOATING, REAL);
    add(MPI_COMPLEX, COMPLEX, TWO_REALS);
    add(MPI_DOUBLE_COMPLEX, COMPLEX, TWO_REALS);
    add(MPI_2REAL, PAIR, TWICE);
    add(MPI_2DOUBLE_PRECISION, PAIR, TWICE);
    add(MPI_2INTEGER, PAIR, INT_PAIR);
#ifdef MPI_INTEGER1
    add(MPI_INTEGER1, FORTRAN_INTEGER, SIGNED);
#endif
    add(MPI_INTEGER2, FORTRAN_INTEGER, SIGNED);
    add(MPI_INTEGER4, FORTRAN_INTEGER, SIGNED);
    add(MPI_INTEGER8, FORTRAN_INTEGER, SIGNED);
    add(MPI_REAL4, FLOATING, REAL);
    add(MPI_REAL8, FLOATING, REAL);
    add(MPI_COMPLEX8, COMPLEX, TWO_REALS);
    add(MPI_COMPLEX16, COMPLEX, TWO_REALS);

#ifdef MPI_REAL16
    add(MPI_REAL16, FLOATING, OTHER);
#endif
#ifdef MPI_COMPLEX32
    add(MPI_COMPLEX32, COMPLEX, TWO_REALS);
#endif
#ifdef MPI_LOGICAL1 /* Open MPI */
    add(MPI_LOGICAL1, LOGICAL, OTHER);
    add(MPI_LOGICAL2, LOGICAL, OTHER);
    add(MPI_LOGICAL4, LOGICAL, OTHER);
    add(MPI_LOGICAL8, LOGICAL, OTHER);
#endif
#ifdef MPI_CXX_BOOL
    add(MPI_CXX_BOOL, LOGICAL, OTHER);
    add(MPI_CXX_FLOAT_COMPLEX, COMPLEX, TWO_REALS);
    add(MPI_CXX_DOUBLE_COMPLEX, COMPLEX, TWO_REALS);
    add(MPI_CXX_LONG_DOUBLE_COMPLEX, COMPLEX, TWO_REALS);
#endif

#ifdef MPIX_C_FLOAT16 /* MPICH, and Open MPI's extension */
    add(MPIX_C_FLOAT16, FLOATING, FLOAT16);
#endif
#ifdef MPIX_SHORT_FLOAT /* Open MPI's extension */
    add(MPIX_SHORT_FLOAT, FLOATING, FLOAT16);
#endif
#ifdef MPIX_BFLOAT16 /* MPICH */
    add(MPIX_BFLOAT16, FLOATING, BFLOAT16);
#endif
#ifdef MPIX_C_BF16 /* Intel MPI */
    add(MPIX_C_BF16, FLOATING, BFLOAT16);
#endif
}

/* Whether MPI accepts a datatype for communication, asked in a way that only returns an error: on a
 * communicator of our own.  Open MPI looks at it in a Bcast of nothing (its MPI_Pack_size crashes
 * on a type that is not committed), MPICH does not, but does in MPI_Pack_size: of nothing too,
 * which is asked for since before 4.0 it aborts where the bytes are more than an int can say. */
static bool usable(MPI_Datatype datatype)
{
#ifdef OPEN_MPI
    return !pmpi.Bcast(NULL, 0, datatype, 0, collx_self());
#else
    int unused;
    return !pmpi.Pack_size(0, datatype, collx_self(), &unused);
#endif
}

bool collx_datatype_derived(MPI_Datatype datatype, struct collx_datatype *type)
{
    if (datatype == MPI_DATATYPE_NULL || !usable(datatype))
        return false;
    *type = (struct collx_datatype){.handle = (uintptr_t)datatype};
    return !pmpi.Type_size_x(datatype, &type->size);
}

/* An Allreduce of nothing checks its arguments, and no more. */
static bool is_taken(MPI_Datatype type, MPI_Op op)
{
    char nothing[2];

    return !pmpi.Allreduce(&nothing[0], &nothing[1], 0, type, op, collx_self());
}

bool collx_same_buffers_refused(void)
{
#ifdef OPEN_MPI
    /* Whether it looks at arguments at all tells it: its complaint about buffers comes to no
     * communicator's handler, so it cannot be asked for that. */
    return !is_taken(MPI_INT, MPI_MAXLOC);
#else
    /* MPIR_CVAR_COLL_ALIAS_CHECK=0 has it look at the other arguments alone. */
    int one = 0;
    return pmpi.Allreduce(&one, &one, 1, MPI_INT, MPI_SUM, collx_self()) != MPI_SUCCESS;
#endif
}

bool collx_datatype_asked(const struct collx_datatype *type, MPI_Op op)
{
    return is_taken((MPI_Datatype)type->handle, op);
}

/* MPI is asked each time: a program that frees such a type, though it must not, may get another one
 * of the same handle. */
bool collx_datatype_of_kind(struct collx_datatype *type, MPI_Op op)
{
    const MPI_Datatype datatype = (MPI_Datatype)type->handle;
    int integers, addresses, types_in_it, combiner;

    /* Of one that is derived all predefined operations are refused. */
    if (!collx_datatype_asked(type, op) ||
        pmpi.Type_get_envelope(datatype, &integers, &addresses, &types_in_it, &combiner))
        return false;
    type->elem = (uint8_t)elem_of(combiner == MPI_COMBINER_F90_REAL      ? REAL
                                  : combiner == MPI_COMBINER_F90_COMPLEX ? TWO_REALS
                                  : combiner == MPI_COMBINER_F90_INTEGER ? SIGNED
                                                                         : OTHER,
                                  type->size);
    return true;
}

/* Whether a handle may be of an operation that a user made. */
static bool is_made(MPI_Op op)
{
#ifdef MPICH
    /* In the upper two bits are what kind it is: none, one of the library's own, of which newer
     * releases have more than are told apart here, or made. */
    return (unsigned)op >> 30 >= 2;
#else
    return op != MPI_OP_NULL;
#endif
}

enum collx_op collx_op_kind(MPI_Op op)
{
    /* Handles are not constant expressions in every MPI, so this is no switch. */
    if (op == MPI_SUM)
        return COLLX_OP_SUM;
    if (op == MPI_MAX)
        return COLLX_OP_MAX;
    if (op == MPI_MIN)
        return COLLX_OP_MIN;
    if (op == MPI_PROD)
        return COLLX_OP_PROD;
    if (op == MPI_LAND)
        return COLLX_OP_LAND;
    if (op == MPI_BAND)
        return COLLX_OP_BAND;
    if (op == MPI_LOR)
        return COLLX_OP_LOR;
    if (op == MPI_BOR)
        return COLLX_OP_BOR;
    if (op == MPI_LXOR)
        return COLLX_OP_LXOR;
    if (op == MPI_BXOR)
        return COLLX_OP_BXOR;
    if (op == MPI_MINLOC)
        return COLLX_OP_MINLOC;
    if (op == MPI_MAXLOC)
        return COLLX_OP_MAXLOC;
    if (op == MPI_REPLACE)
        return COLLX_OP_REPLACE;
    if (op == MPI_NO_OP)
        return COLLX_OP_NO_OP;
    return is_made(op) ? COLLX_OP_USER : COLLX_OP_NONE;
}
