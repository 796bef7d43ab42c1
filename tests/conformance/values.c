/* What ranks contribute to reductions with the predefined ops. */
#include "conformance.h"

#include <complex.h>
#include <string.h>

struct cf_op cf_op[CF_OPS];

void cf_values_init(void)
{
    /* Handles need not be constants. */
    const struct cf_op all[] = {
        {"MPI_MAX", MPI_MAX, CF_MAX},          {"MPI_MIN", MPI_MIN, CF_MIN},
        {"MPI_SUM", MPI_SUM, CF_SUM},          {"MPI_PROD", MPI_PROD, CF_PROD},
        {"MPI_LAND", MPI_LAND, CF_LAND},       {"MPI_BAND", MPI_BAND, CF_BAND},
        {"MPI_LOR", MPI_LOR, CF_LOR},          {"MPI_BOR", MPI_BOR, CF_BOR},
        {"MPI_LXOR", MPI_LXOR, CF_LXOR},       {"MPI_BXOR", MPI_BXOR, CF_BXOR},
        {"MPI_MAXLOC", MPI_MAXLOC, CF_MAXLOC}, {"MPI_MINLOC", MPI_MINLOC, CF_MINLOC},
    };

    _Static_assert(sizeof all == sizeof cf_op, "one for each");
    memcpy(cf_op, all, sizeof all);
}

static bool standard_allows(enum cf_op_kind op, const struct cf_type *type)
{
    bool arithmetic = op == CF_MAX || op == CF_MIN || op == CF_SUM || op == CF_PROD;
    bool logical = op == CF_LAND || op == CF_LOR || op == CF_LXOR;
    bool bitwise = op == CF_BAND || op == CF_BOR || op == CF_BXOR;
    MPI_Datatype handle = type->handle;

    switch (type->kind) {
    case CF_I8:
    case CF_I16:
    case CF_I32:
    case CF_I64:
        /* Logical ops are for the integers of C, and not for addresses. */
        if (handle == MPI_AINT || handle == MPI_OFFSET || handle == MPI_COUNT ||
            strncmp(type->name, "MPI_INTEGER", 11) == 0)
            logical = false;
        return arithmetic || logical || bitwise;
    case CF_U8:
    case CF_U16:
    case CF_U32:
    case CF_U64:
        return arithmetic || logical || bitwise;
    case CF_F32:
    case CF_F64:
    case CF_F80:
        return arithmetic;
    case CF_C32:
    case CF_C64:
    case CF_C80:
        return op == CF_SUM || op == CF_PROD;
    case CF_BOOL:
    case CF_LOGICAL:
        return logical;
    case CF_BYTE:
        return bitwise;
    default:
        return op == CF_MAXLOC || op == CF_MINLOC;
    }
}

/* The library may know less than the standard (and may crash over what it does not know): its word
 * counts for those that the standard allows. */
bool cf_op_allowed(const struct cf_op *op, const struct cf_type *type)
{
    long double in[4] = {0}, out[4] = {0};
    MPI_Errhandler before;
    int rc;

    if (!standard_allows(op->kind, type))
        return false;
    MPI_Comm_get_errhandler(MPI_COMM_SELF, &before);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    rc = cf_library.allreduce(in, out, 1, type->handle, op->handle, MPI_COMM_SELF);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, before);
    MPI_Errhandler_free(&before);
    return rc == MPI_SUCCESS;
}

/* 64 random bits for element i: `random` is where this case's stream of random bytes begins. */
static uint64_t bits(const unsigned char *random, int64_t i)
{
    uint64_t word;

    memcpy(&word, random + i, sizeof word);
    return word;
}

/* Nonzero for few or many elements, so that both results of a logical op occur. */
static bool truth(enum cf_op_kind op, uint64_t r)
{
    return op == CF_LAND ? r % 16 != 0 : op == CF_LOR ? r % 16 == 0 : r % 2 == 0;
}

/* Sums of 16 of them fit into a byte, products of 16 too. */
static int64_t small(enum cf_op_kind op, uint64_t r, int rank, bool is_signed)
{
    int64_t value;

    if (op == CF_PROD)
        value = rank < 6 && r % 4 == 0 ? 2 : 1;
    else
        value = (int64_t)(r % 8);
    return is_signed && (r & 256) ? -value : value;
}

static bool is_unsigned(const struct cf_type *type)
{
    return type->kind == CF_BYTE || (type->kind >= CF_U8 && type->kind <= CF_U64);
}

/* MPICH 4.0 takes the maximum of unsigned numbers as if they were signed, as Open MPI 4.1 does with
 * MPI_UNSIGNED_LONG, while it takes MPI_OFFSET for unsigned.  The standard is what counts. */
bool cf_library_errs(const struct cf_type *type, const struct cf_op *op)
{
    return (is_unsigned(type) || type->handle == MPI_OFFSET) &&
           (op->kind == CF_MAX || op->kind == CF_MIN);
}

static uint64_t integer(const struct cf_type *type, const struct cf_op *op, uint64_t r, int rank)
{
    switch (op->kind) {
    case CF_SUM:
    case CF_PROD:
        /* Unsigned numbers wrap around, by the rules of C. */
        if (is_unsigned(type) && type->size >= 4)
            return r;
        return (uint64_t)small(op->kind, r, rank, !is_unsigned(type));
    case CF_LAND:
    case CF_LOR:
    case CF_LXOR:
        return !truth(op->kind, r) ? 0 : r & 64 ? 1 : r | 4;
    default:
        /* Only collx can be tested with numbers whose top bit is set. */
        if (!cf_routed && cf_library_errs(type, op))
            return r & (UINT64_MAX >> (65 - 8 * type->size));
        return r;
    }
}

static double real(enum cf_op_kind op, uint64_t r, int rank)
{
    switch (op) {
    case CF_PROD:
        return (r & 64 ? -1.0 : 1.0) * (r % 4 == 0 ? 2.0 : r % 4 == 1 ? 0.5 : 1.0);
    case CF_LAND:
    case CF_LOR:
    case CF_LXOR:
        return truth(op, r) ? (r & 64 ? 1.0 : -2.5) : 0.0;
    case CF_SUM:
        return (double)small(op, r, rank, true) * 0.25;
    default:
        return (double)(int32_t)r / 16.0;
    }
}

static double complex two_reals(enum cf_op_kind op, uint64_t r, int rank)
{
    static const double complex units[] = {1, -1, I, -I, 1 + I, 0.5, 1 - I, 2};

    if (op == CF_PROD)
        return units[r % 8];
    return real(op, r, rank) + real(op, r >> 16, rank) * I;
}

#define FILL(ctype, value)                                                                         \
    for (int64_t i = 0; i < count; i++) {                                                          \
        uint64_t r = bits(random, i);                                                              \
        ((ctype *)elements)[i] = (ctype)(value);                                                   \
    }                                                                                              \
    break

/* Few values, so that many are equal and the place decides. */
#define FILL_PAIR(first, second)                                                                   \
    for (int64_t i = 0; i < count; i++) {                                                          \
        struct pair {                                                                              \
            first a;                                                                               \
            second b;                                                                              \
        } *pair = (struct pair *)elements + i;                                                     \
        uint64_t r = bits(random, i);                                                              \
        pair->a = (first)((int)(r % 5) - 2);                                                       \
        pair->b = (second)(r >> 8 & 31);                                                           \
    }                                                                                              \
    break

void cf_values(const struct cf_type *type, const struct cf_op *op, void *elements, int64_t count,
               uint64_t seed, int rank)
{
    const unsigned char *random = cf_stream(seed, rank);
    enum cf_op_kind k = op->kind;

    memset(elements, 0, (size_t)(count * type->extent));
    switch (type->kind) {
    case CF_I8:
        FILL(int8_t, integer(type, op, r, rank));
    case CF_I16:
        FILL(int16_t, integer(type, op, r, rank));
    case CF_I32:
        FILL(int32_t, integer(type, op, r, rank));
    case CF_I64:
        FILL(int64_t, integer(type, op, r, rank));
    case CF_BYTE:
    case CF_U8:
        FILL(uint8_t, integer(type, op, r, rank));
    case CF_U16:
        FILL(uint16_t, integer(type, op, r, rank));
    case CF_U32:
        FILL(uint32_t, integer(type, op, r, rank));
    case CF_U64:
        FILL(uint64_t, integer(type, op, r, rank));
    case CF_F32:
        FILL(float, real(k, r, rank));
    case CF_F64:
        FILL(double, real(k, r, rank));
    case CF_F80:
        FILL(long double, real(k, r, rank));
    case CF_C32:
        FILL(float complex, two_reals(k, r, rank));
    case CF_C64:
        FILL(double complex, two_reals(k, r, rank));
    case CF_C80:
        FILL(long double complex, two_reals(k, r, rank));
    case CF_BOOL:
        FILL(_Bool, truth(k, r));
    case CF_LOGICAL:
        FILL(int, truth(k, r));
    case CF_F32_INT:
        FILL_PAIR(float, int);
    case CF_F64_INT:
        FILL_PAIR(double, int);
    case CF_I64_INT:
        FILL_PAIR(long, int);
    case CF_I32_INT:
        FILL_PAIR(int, int);
    case CF_I16_INT:
        FILL_PAIR(short, int);
    case CF_F80_INT:
        FILL_PAIR(long double, int);
    case CF_F32_F32:
        FILL_PAIR(float, float);
    case CF_F64_F64:
        FILL_PAIR(double, double);
    }
}

void cf_values_put(const struct cf_buffer *buffer, const void *elements)
{
    const struct cf_type *type = buffer->type;
    const unsigned char *from = elements;

    if (type->pieces == 1) {
        cf_buffer_put(buffer, elements);
        return;
    }
    for (int64_t i = 0; i < buffer->count; i++)
        for (size_t p = 0; p < type->pieces; p++) {
            ptrdiff_t at = i * type->extent + type->piece[p].at;

            memcpy(buffer->data + at, from + at, type->piece[p].size);
        }
}

void cf_values_clear_padding(const struct cf_buffer *buffer)
{
    enum { X87 = 10, STORED = sizeof(long double) };
    ptrdiff_t step = buffer->type->extent;
    int64_t count = buffer->count;

    switch (buffer->type->kind) {
    case CF_C80:
        step = STORED;
        count *= 2;
        break;
    case CF_F80:
    case CF_F80_INT:
        break;
    default:
        return;
    }
    /* Only x86's long double has bytes without a meaning. */
    if (__LDBL_MANT_DIG__ == 64)
        for (int64_t i = 0; i < count; i++)
            memset(buffer->data + i * step + X87, 0, STORED - X87);
}

#define EXTREME(ctype)                                                                             \
    for (int64_t i = 0; i < count; i++) {                                                          \
        ctype a = ((const ctype *)in)[i], *b = (ctype *)inout + i;                                 \
        if (op->kind == CF_MAX ? a > *b : a < *b)                                                  \
            *b = a;                                                                                \
    }                                                                                              \
    break

void cf_values_reduce(const struct cf_type *type, const struct cf_op *op, const void *in,
                      void *inout, int64_t count)
{
    if (!cf_library_errs(type, op)) {
        cf_library.reduce_local(in, inout, (int)count, type->handle, op->handle);
        return;
    }
    switch (type->kind) {
    case CF_U8:
        EXTREME(uint8_t);
    case CF_U16:
        EXTREME(uint16_t);
    case CF_U32:
        EXTREME(uint32_t);
    case CF_U64:
        EXTREME(uint64_t);
    default:
        EXTREME(int64_t);
    }
}

static void clear_signs(unsigned char *data, int64_t count, size_t size)
{
    static const unsigned char zero[sizeof(long double)];

    for (int64_t i = 0; i < count; i++, data += size) {
        unsigned char copy[sizeof(long double)], *sign;

        memcpy(copy, data, size);
        sign = size == sizeof(long double) && __LDBL_MANT_DIG__ == 64 ? copy + 9 : copy + size - 1;
        *sign &= 0x7f;
        if (memcmp(copy, zero, size) == 0)
            memset(data, 0, size);
    }
}

void cf_values_clear_signs(const struct cf_buffer *buffer)
{
    switch (buffer->type->kind) {
    case CF_F32:
        clear_signs(buffer->data, buffer->count, sizeof(float));
        break;
    case CF_F64:
        clear_signs(buffer->data, buffer->count, sizeof(double));
        break;
    case CF_F80:
        clear_signs(buffer->data, buffer->count, sizeof(long double));
        break;
    case CF_C32:
        clear_signs(buffer->data, 2 * buffer->count, sizeof(float));
        break;
    case CF_C64:
        clear_signs(buffer->data, 2 * buffer->count, sizeof(double));
        break;
    case CF_C80:
        clear_signs(buffer->data, 2 * buffer->count, sizeof(long double));
        break;
    default:
        break;
    }
}
