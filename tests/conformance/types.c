/* Datatypes whose layout is known without asking MPI, and buffers of them. */
#include "conformance.h"

#include <complex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

enum { CF_TYPES_MAX = 80 };

static struct cf_type basic_types[CF_TYPES_MAX], derived_types[CF_TYPES_MAX];
struct cf_type *cf_basic = basic_types, *cf_derived = derived_types;
size_t cf_basic_count, cf_derived_count;

static unsigned char *arena[CF_ARENAS];
static unsigned char *background;

static void add_piece(struct cf_type *type, ptrdiff_t at, size_t size)
{
    type->piece = realloc(type->piece, (type->pieces + 1) * sizeof *type->piece);
    type->piece[type->pieces++] = (struct cf_piece){at, size};
    type->size += size;
}

/* `count` elements of `old`, beginning at `at`, come next. */
static void add_elements(struct cf_type *type, const struct cf_type *old, ptrdiff_t at, int count)
{
    if (old->pieces == 1 && (ptrdiff_t)old->size == old->extent) {
        add_piece(type, at + old->piece[0].at, old->size * (size_t)count);
        return;
    }
    for (int i = 0; i < count; i++)
        for (size_t p = 0; p < old->pieces; p++)
            add_piece(type, at + i * old->extent + old->piece[p].at, old->piece[p].size);
}

static struct cf_type new_type(const char *name, ptrdiff_t extent)
{
    struct cf_type type = {.extent = extent};

    snprintf(type.name, sizeof type.name, "%s", name);
    return type;
}

static void basic(const char *name, MPI_Datatype handle, enum cf_kind kind, size_t size)
{
    struct cf_type *type = &basic_types[cf_basic_count];
    int mpi_size;

    if (handle == MPI_DATATYPE_NULL)
        return;
    /* A Fortran type may have been switched off, or have another size than our idea of it. */
    MPI_Type_size(handle, &mpi_size);
    if ((size_t)mpi_size != size)
        return;
    *type = new_type(name, (ptrdiff_t)size);
    type->handle = handle;
    type->kind = kind;
    add_piece(type, 0, size);
    cf_basic_count++;
}

static void pair(const char *name, MPI_Datatype handle, enum cf_kind kind, size_t size,
                 ptrdiff_t second, size_t second_size, ptrdiff_t extent)
{
    struct cf_type *type = &basic_types[cf_basic_count];

    if (handle == MPI_DATATYPE_NULL)
        return;
    *type = new_type(name, extent);
    type->handle = handle;
    type->kind = kind;
    add_piece(type, 0, size);
    add_piece(type, second, second_size);
    cf_basic_count++;
}

#define BASIC(handle, kind, ctype) basic(#handle, handle, kind, sizeof(ctype))
#define PAIR(handle, kind, first, second)                                                          \
    pair(#handle, handle, kind, sizeof(first),                                                     \
         offsetof(                                                                                 \
             struct {                                                                              \
                 first a;                                                                          \
                 second b;                                                                         \
             },                                                                                    \
             b),                                                                                   \
         sizeof(second), sizeof(struct {                                                           \
             first a;                                                                              \
             second b;                                                                             \
         }))

static void basic_types_init(void)
{
    BASIC(MPI_SIGNED_CHAR, CF_I8, signed char);
    BASIC(MPI_UNSIGNED_CHAR, CF_U8, unsigned char);
    BASIC(MPI_CHAR, CF_I8, char);
    BASIC(MPI_SHORT, CF_I16, short);
    BASIC(MPI_UNSIGNED_SHORT, CF_U16, unsigned short);
    BASIC(MPI_INT, CF_I32, int);
    BASIC(MPI_UNSIGNED, CF_U32, unsigned);
    BASIC(MPI_LONG, CF_I64, long);
    BASIC(MPI_UNSIGNED_LONG, CF_U64, unsigned long);
    BASIC(MPI_LONG_LONG, CF_I64, long long);
    BASIC(MPI_UNSIGNED_LONG_LONG, CF_U64, unsigned long long);
    BASIC(MPI_INT8_T, CF_I8, int8_t);
    BASIC(MPI_INT16_T, CF_I16, int16_t);
    BASIC(MPI_INT32_T, CF_I32, int32_t);
    BASIC(MPI_INT64_T, CF_I64, int64_t);
    BASIC(MPI_UINT8_T, CF_U8, uint8_t);
    BASIC(MPI_UINT16_T, CF_U16, uint16_t);
    BASIC(MPI_UINT32_T, CF_U32, uint32_t);
    BASIC(MPI_UINT64_T, CF_U64, uint64_t);
    BASIC(MPI_AINT, CF_I64, MPI_Aint);
    BASIC(MPI_OFFSET, CF_I64, MPI_Offset);
    BASIC(MPI_COUNT, CF_I64, MPI_Count);
    BASIC(MPI_WCHAR, CF_I32, wchar_t);
    BASIC(MPI_FLOAT, CF_F32, float);
    BASIC(MPI_DOUBLE, CF_F64, double);
    BASIC(MPI_LONG_DOUBLE, CF_F80, long double);
    BASIC(MPI_C_FLOAT_COMPLEX, CF_C32, float complex);
    BASIC(MPI_C_DOUBLE_COMPLEX, CF_C64, double complex);
    BASIC(MPI_C_LONG_DOUBLE_COMPLEX, CF_C80, long double complex);
    BASIC(MPI_C_BOOL, CF_BOOL, _Bool);
    BASIC(MPI_BYTE, CF_BYTE, char);
    PAIR(MPI_FLOAT_INT, CF_F32_INT, float, int);
    PAIR(MPI_DOUBLE_INT, CF_F64_INT, double, int);
    PAIR(MPI_LONG_INT, CF_I64_INT, long, int);
    PAIR(MPI_2INT, CF_I32_INT, int, int);
    PAIR(MPI_SHORT_INT, CF_I16_INT, short, int);
    PAIR(MPI_LONG_DOUBLE_INT, CF_F80_INT, long double, int);
    BASIC(MPI_CXX_BOOL, CF_BOOL, _Bool);
    BASIC(MPI_CXX_FLOAT_COMPLEX, CF_C32, float complex);
    BASIC(MPI_CXX_DOUBLE_COMPLEX, CF_C64, double complex);
    BASIC(MPI_CXX_LONG_DOUBLE_COMPLEX, CF_C80, long double complex);
    BASIC(MPI_CHARACTER, CF_I8, char);
    BASIC(MPI_INTEGER, CF_I32, int);
    BASIC(MPI_INTEGER1, CF_I8, int8_t);
    BASIC(MPI_INTEGER2, CF_I16, int16_t);
    BASIC(MPI_INTEGER4, CF_I32, int32_t);
    BASIC(MPI_INTEGER8, CF_I64, int64_t);
    BASIC(MPI_REAL, CF_F32, float);
    BASIC(MPI_REAL4, CF_F32, float);
    BASIC(MPI_REAL8, CF_F64, double);
    BASIC(MPI_DOUBLE_PRECISION, CF_F64, double);
    BASIC(MPI_COMPLEX, CF_C32, float complex);
    BASIC(MPI_COMPLEX8, CF_C32, float complex);
    BASIC(MPI_COMPLEX16, CF_C64, double complex);
    BASIC(MPI_DOUBLE_COMPLEX, CF_C64, double complex);
    BASIC(MPI_LOGICAL, CF_LOGICAL, int);
    PAIR(MPI_2INTEGER, CF_I32_INT, int, int);
    PAIR(MPI_2REAL, CF_F32_F32, float, float);
    PAIR(MPI_2DOUBLE_PRECISION, CF_F64_F64, double, double);
}

const struct cf_type *cf_basic_find(MPI_Datatype handle)
{
    for (size_t i = 0; i < cf_basic_count; i++)
        if (cf_basic[i].handle == handle)
            return &cf_basic[i];
    fprintf(stderr, "conformance: a basic type that this MPI ought to have is missing\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
    exit(2);
}

struct cf_type cf_type_contiguous(const struct cf_type *old, int count)
{
    char name[sizeof old->name];
    struct cf_type type;

    snprintf(name, sizeof name, "%d of %.30s", count, old->name);
    type = new_type(name, count * old->extent);
    add_elements(&type, old, 0, count);
    type.derived = true;
    MPI_Type_contiguous(count, old->handle, &type.handle);
    MPI_Type_commit(&type.handle);
    return type;
}

MPI_Datatype cf_type_absolute(const struct cf_type *old, const void *address, int count)
{
    MPI_Datatype handle;
    MPI_Aint at;

    MPI_Get_address(address, &at);
    MPI_Type_create_hindexed(1, &count, &at, old->handle, &handle);
    MPI_Type_commit(&handle);
    return handle;
}

/* A type ours to describe; `handle` is filled in by the caller. */
static struct cf_type *derive(const char *name, ptrdiff_t extent)
{
    struct cf_type *type = &derived_types[cf_derived_count++];

    *type = new_type(name, extent);
    type->derived = true;
    return type;
}

static void derive_vectors(void)
{
    const struct cf_type *i32 = cf_basic_find(MPI_INT), *f64 = cf_basic_find(MPI_DOUBLE);
    struct cf_type *type;

    type = derive("vector(3, 2, 4) of int", (2 * 4 + 2) * 4);
    MPI_Type_vector(3, 2, 4, MPI_INT, &type->handle);
    for (int i = 0; i < 3; i++)
        add_elements(type, i32, i * 16, 2);

    type = derive("vector(5, 1, 1) of double, no gaps", 5 * 8);
    MPI_Type_vector(5, 1, 1, MPI_DOUBLE, &type->handle);
    add_elements(type, f64, 0, 5);

    type = derive("hvector(4, 1, 20 bytes) of int", 3 * 20 + 4);
    MPI_Type_create_hvector(4, 1, 20, MPI_INT, &type->handle);
    for (int i = 0; i < 4; i++)
        add_elements(type, i32, i * 20, 1);

    /* Elements of one lie between those of the next. */
    type = derive("vector(2, 1, 2) of int, resized to one int", 4 * 1);
    {
        MPI_Datatype vector;

        MPI_Type_vector(2, 1, 1000, MPI_INT, &vector);
        MPI_Type_create_resized(vector, 0, 4, &type->handle);
        MPI_Type_free(&vector);
    }
    add_elements(type, i32, 0, 1);
    add_elements(type, i32, 4000, 1);
}

static void derive_indexed(void)
{
    const struct cf_type *i32 = cf_basic_find(MPI_INT);
    struct cf_type *type;

    /* No gaps, size == extent, and yet not to be copied byte by byte. */
    type = derive("indexed {1,0} of int", 8);
    MPI_Type_create_indexed_block(2, 1, (int[]){1, 0}, MPI_INT, &type->handle);
    add_elements(type, i32, 4, 1);
    add_elements(type, i32, 0, 1);

    type = derive("indexed backwards with gaps", 10 * 4);
    MPI_Type_indexed(3, (int[]){2, 1, 3}, (int[]){8, 4, 0}, MPI_INT, &type->handle);
    add_elements(type, i32, 32, 2);
    add_elements(type, i32, 16, 1);
    add_elements(type, i32, 0, 3);

    /* Begins before the buffer's address. */
    type = derive("indexed {-2,1} of int", 4 * 4);
    MPI_Type_create_indexed_block(2, 1, (int[]){-2, 1}, MPI_INT, &type->handle);
    add_elements(type, i32, -8, 1);
    add_elements(type, i32, 4, 1);

    type = derive("indexed with empty blocks", 3 * 4);
    MPI_Type_indexed(4, (int[]){0, 1, 0, 2}, (int[]){7, 0, 3, 1}, MPI_INT, &type->handle);
    add_elements(type, i32, 0, 3);
}

static void derive_structs(void)
{
    const struct cf_type *u8 = cf_basic_find(MPI_UNSIGNED_CHAR), *f64 = cf_basic_find(MPI_DOUBLE);
    const struct cf_type *i16 = cf_basic_find(MPI_SHORT);
    MPI_Datatype inner;
    struct cf_type *type;

    type = derive("struct {char; double; short}", 24);
    MPI_Type_create_struct(3, (int[]){1, 1, 1}, (MPI_Aint[]){0, 8, 16},
                           (MPI_Datatype[]){MPI_UNSIGNED_CHAR, MPI_DOUBLE, MPI_SHORT}, &inner);
    MPI_Type_create_resized(inner, 0, 24, &type->handle);
    MPI_Type_free(&inner);
    add_elements(type, u8, 0, 1);
    add_elements(type, f64, 8, 1);
    add_elements(type, i16, 16, 1);

    type = derive("struct, members backwards", 24);
    MPI_Type_create_struct(2, (int[]){3, 2}, (MPI_Aint[]){16, 0},
                           (MPI_Datatype[]){MPI_SHORT, MPI_DOUBLE}, &inner);
    MPI_Type_create_resized(inner, 0, 24, &type->handle);
    MPI_Type_free(&inner);
    add_elements(type, i16, 16, 3);
    add_elements(type, f64, 0, 2);

    type = derive("resized, lower bound -8, extent 32", 32);
    MPI_Type_create_resized(MPI_DOUBLE, -8, 32, &type->handle);
    add_elements(type, f64, 0, 1);

    type = derive("resized, lower bound 16 above the data", 24);
    MPI_Type_create_resized(MPI_DOUBLE, 16, 24, &type->handle);
    add_elements(type, f64, 0, 1);
}

static void derive_others(void)
{
    const struct cf_type *u8 = cf_basic_find(MPI_UNSIGNED_CHAR), *i32 = cf_basic_find(MPI_INT);
    struct cf_type *type;

    derived_types[cf_derived_count++] = cf_type_contiguous(cf_basic_find(MPI_INT), 3);
    derived_types[cf_derived_count++] = cf_type_contiguous(cf_basic_find(MPI_DOUBLE_INT), 5);
    derived_types[cf_derived_count++] = cf_type_contiguous(&derived_types[4], 7);

    type = derive("subarray 2x3 of 4x5 ints at (1,1)", 20 * 4);
    MPI_Type_create_subarray(2, (int[]){4, 5}, (int[]){2, 3}, (int[]){1, 1}, MPI_ORDER_C, MPI_INT,
                             &type->handle);
    add_elements(type, i32, 6 * 4, 3);
    add_elements(type, i32, 11 * 4, 3);

    type = derive("subarray 3x2 of 5x4 bytes, Fortran order", 20);
    MPI_Type_create_subarray(2, (int[]){5, 4}, (int[]){3, 2}, (int[]){2, 0}, MPI_ORDER_FORTRAN,
                             MPI_UNSIGNED_CHAR, &type->handle);
    add_elements(type, u8, 2, 3);
    add_elements(type, u8, 7, 3);

    type = derive("a dup of int", 4);
    MPI_Type_dup(MPI_INT, &type->handle);
    add_elements(type, i32, 0, 1);

    type = derive("contiguous, no elements", 0);
    MPI_Type_contiguous(0, MPI_INT, &type->handle);
}

/* What we worked out is what MPI did: else the test itself is wrong. */
static void check(const struct cf_type *type)
{
    MPI_Aint lb, extent;
    int size;

    MPI_Type_size(type->handle, &size);
    MPI_Type_get_extent(type->handle, &lb, &extent);
    if ((size_t)size == type->size && extent == type->extent)
        return;
    fprintf(stderr, "conformance: %s: MPI says size %d, extent %td; expected %zu, %td\n",
            type->name, size, extent, type->size, type->extent);
    MPI_Abort(MPI_COMM_WORLD, 2);
}

void cf_types_init(void)
{
    struct cf_random random = {2};

    for (int i = 0; i < CF_ARENAS; i++)
        arena[i] = cf_memory(CF_ARENA);
    background = cf_memory(CF_ARENA);
    for (size_t i = 0; i < CF_ARENA; i += 8) {
        uint64_t value = cf_random_next(&random);

        memcpy(background + i, &value, 8);
    }
    basic_types_init();
    derive_vectors();
    derive_indexed();
    derive_structs();
    derive_others();
    for (size_t i = 0; i < cf_derived_count; i++)
        MPI_Type_commit(&cf_derived[i].handle);
    for (size_t i = 0; i < cf_basic_count; i++)
        check(&cf_basic[i]);
    for (size_t i = 0; i < cf_derived_count; i++)
        check(&cf_derived[i]);
}

void cf_type_free(struct cf_type *type)
{
    free(type->piece);
    if (type->derived)
        MPI_Type_free(&type->handle);
}

void cf_types_finish(void)
{
    for (size_t i = 0; i < cf_basic_count; i++)
        cf_type_free(&cf_basic[i]);
    for (size_t i = 0; i < cf_derived_count; i++)
        cf_type_free(&cf_derived[i]);
    for (int i = 0; i < CF_ARENAS; i++)
        cf_memory_free(arena[i], CF_ARENA);
    cf_memory_free(background, CF_ARENA);
}

void cf_buffer_span(const struct cf_type *type, int64_t count, ptrdiff_t *first, ptrdiff_t *end)
{
    ptrdiff_t last = count > 0 ? (ptrdiff_t)(count - 1) * type->extent : 0;

    *first = *end = 0;
    for (size_t p = 0; count > 0 && p < type->pieces; p++) {
        ptrdiff_t at = type->piece[p].at, stop = at + (ptrdiff_t)type->piece[p].size;

        *first = at < *first ? at : *first;
        *end = stop + last > *end ? stop + last : *end;
    }
}

struct cf_buffer cf_buffer_make(enum cf_arena which, const struct cf_type *type, int64_t count,
                                unsigned shift)
{
    struct cf_buffer buffer = {.start = arena[which], .type = type, .count = count};
    ptrdiff_t first, end;

    cf_buffer_span(type, count, &first, &end);
    buffer.data = buffer.start + CF_GUARD + shift - first;
    buffer.total = (size_t)(end - first) + 2 * CF_GUARD + shift;
    if (buffer.total > CF_ARENA) {
        fprintf(stderr, "conformance: a case needs more than %d bytes\n", CF_ARENA);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    memcpy(buffer.start, background, buffer.total);
    return buffer;
}

static bool plain(const struct cf_type *type)
{
    return type->pieces == 1 && type->piece[0].at == 0 && (ptrdiff_t)type->size == type->extent;
}

void cf_buffer_put(const struct cf_buffer *buffer, const void *data)
{
    const struct cf_type *type = buffer->type;
    const unsigned char *from = data;

    if (plain(type)) {
        memcpy(buffer->data, from, (size_t)buffer->count * type->size);
        return;
    }
    for (int64_t i = 0; i < buffer->count; i++)
        for (size_t p = 0; p < type->pieces; p++) {
            memcpy(buffer->data + i * type->extent + type->piece[p].at, from, type->piece[p].size);
            from += type->piece[p].size;
        }
}

void cf_buffer_get(const struct cf_buffer *buffer, void *data)
{
    const struct cf_type *type = buffer->type;
    unsigned char *to = data;

    if (plain(type)) {
        memcpy(to, buffer->data, (size_t)buffer->count * type->size);
        return;
    }
    for (int64_t i = 0; i < buffer->count; i++)
        for (size_t p = 0; p < type->pieces; p++) {
            memcpy(to, buffer->data + i * type->extent + type->piece[p].at, type->piece[p].size);
            to += type->piece[p].size;
        }
}

/* Which element's data the byte at `offset` from the buffer's address is, or -1: nobody's. */
static int64_t element_of(const struct cf_buffer *buffer, ptrdiff_t offset)
{
    const struct cf_type *type = buffer->type;

    for (int64_t i = 0; i < buffer->count; i++)
        for (size_t p = 0; p < type->pieces; p++) {
            ptrdiff_t at = offset - i * type->extent - type->piece[p].at;

            if (at >= 0 && at < (ptrdiff_t)type->piece[p].size)
                return i;
        }
    return -1;
}

bool cf_buffer_equal(const struct cf_buffer *got, const struct cf_buffer *expected,
                     const char *what)
{
    size_t i = 0;
    int64_t element;
    ptrdiff_t offset;

    if (memcmp(got->start, expected->start, got->total) == 0)
        return true;
    while (got->start[i] == expected->start[i])
        i++;
    offset = got->start + i - got->data;
    element = element_of(got, offset);
    if (element >= 0)
        cf_fail("%s: element %jd (byte %td of the buffer): 0x%02x, expected 0x%02x", what,
                (intmax_t)element, offset, got->start[i], expected->start[i]);
    else
        cf_fail("%s: byte %td, which belongs to no element, was overwritten", what, offset);
    return false;
}
