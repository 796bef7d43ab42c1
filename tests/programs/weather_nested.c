/* Programs with types within types, of every way to make one: a case of weather.c. */
#include "tests/programs/weather.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { DEEP = 4, BLOCKS = 40, ARENA = 4 << 20 };

static uint64_t state;

/* 0 to below - 1; the same on all ranks. */
static int any(int below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int)((state >> 33) % (uint64_t)below);
}

/* Data lies within what MPI takes for an element, so that elements in a row do not overlap. */
static MPI_Datatype with_room(MPI_Datatype type)
{
    MPI_Aint lowest, span;
    MPI_Datatype resized;

    MPI_Type_get_true_extent(type, &lowest, &span);
    const MPI_Aint lower = lowest - 4 * any(3);
    MPI_Type_create_resized(type, lower, lowest + span - lower + 4 * any(4), &resized);
    MPI_Type_free(&type);
    return resized;
}

static MPI_Datatype predefined(void)
{
    const MPI_Datatype types[] = {MPI_CHAR,   MPI_SHORT,      MPI_INT,           MPI_DOUBLE,
                                  MPI_DOUBLE, MPI_DOUBLE_INT, MPI_DOUBLE_COMPLEX};
    MPI_Datatype type;

    if (any(12) > 0)
        return types[any(7)];
    MPI_Type_create_f90_real(15, 307, &type);
    return type;
}

static MPI_Datatype nested(int depth, bool *made);

/* Where blocks lie that do not overlap, in elements; some of them backwards. */
static void lay_out(int count, const int *length, int *at)
{
    int end = any(3) - 1;

    for (int i = 0; i < count; i++) {
        at[i] = end + any(3);
        end = at[i] + length[i];
    }
    if (any(2))
        return;
    for (int i = 0; i < count; i++)
        at[i] = end - at[i] - length[i];
}

static MPI_Datatype blocks(MPI_Datatype of, int way)
{
    int length[BLOCKS], at[BLOCKS];
    MPI_Aint bytes[BLOCKS], lb, extent;
    const int count = any(4) ? 1 + any(5) : BLOCKS, one = 1 + any(3);
    MPI_Datatype type;

    MPI_Type_get_extent(of, &lb, &extent);
    for (int i = 0; i < count; i++)
        length[i] = way >= 2 ? one : any(4);
    lay_out(count, length, at);
    for (int i = 0; i < count; i++)
        bytes[i] = at[i] * extent + 4;
    switch (way) {
    case 0:
        MPI_Type_indexed(count, length, at, of, &type);
        break;
    case 1:
        MPI_Type_create_hindexed(count, length, bytes, of, &type);
        break;
    case 2:
        MPI_Type_create_indexed_block(count, one, at, of, &type);
        break;
    default:
        MPI_Type_create_hindexed_block(count, one, bytes, of, &type);
    }
    return type;
}

static MPI_Datatype vector(MPI_Datatype of, bool in_bytes)
{
    const int count = 1 + any(any(3) ? 6 : 200), length = 1 + any(3), step = length + any(3);
    const int sign = any(4) ? 1 : -1;
    MPI_Aint lb, extent;
    MPI_Datatype type;

    MPI_Type_get_extent(of, &lb, &extent);
#if MPI_VERSION >= 4
    /* Nothing that takes an int may be asked about it. */
    if (any(4) == 0) {
        MPI_Type_vector_c(count, length, sign * step, of, &type);
        return type;
    }
#endif
    if (in_bytes)
        MPI_Type_create_hvector(count, length, sign * (step * extent + 4), of, &type);
    else
        MPI_Type_vector(count, length, sign * step, of, &type);
    return type;
}

static MPI_Datatype subarray(MPI_Datatype of)
{
    int whole[DEEP], part[DEEP], start[DEEP];
    const int dimensions = 1 + any(DEEP);
    MPI_Datatype type;

    for (int i = 0; i < dimensions; i++) {
        whole[i] = 1 + any(5);
        part[i] = any(3) ? 1 + any(whole[i]) : whole[i];
        start[i] = any(whole[i] - part[i] + 1);
    }
    MPI_Type_create_subarray(dimensions, whole, part, start,
                             any(2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN, of, &type);
    return type;
}

/* Open MPI makes none of a type without data. */
static MPI_Datatype darray(MPI_Datatype of)
{
    MPI_Datatype type;
    int size_of;

    MPI_Type_size(of, &size_of);
    MPI_Type_create_darray(4, any(4), 2, (int[]){5, 6},
                           (int[]){MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_BLOCK},
                           (int[]){2, MPI_DISTRIBUTE_DFLT_DARG}, (int[]){2, 2}, MPI_ORDER_C,
                           size_of ? of : MPI_INT, &type);
    return type;
}

static MPI_Datatype structure(int depth)
{
    enum { MEMBERS = 5 };
    MPI_Datatype member[MEMBERS], type;
    MPI_Aint at[MEMBERS], lb, extent, end = 0;
    int length[MEMBERS];
    bool made[MEMBERS];
    const int count = 1 + any(MEMBERS);

    for (int i = 0; i < count; i++) {
        member[i] = nested(depth + 1, &made[i]);
        length[i] = any(4);
        MPI_Type_get_extent(member[i], &lb, &extent);
        at[i] = end - lb + 4 * any(2);
        end = at[i] + lb + length[i] * extent;
    }
    MPI_Type_create_struct(count, length, at, member, &type);
    for (int i = 0; i < count; i++)
        if (made[i])
            MPI_Type_free(&member[i]);
    return type;
}

static MPI_Datatype nested(int depth, bool *made)
{
    MPI_Datatype of, type;
    bool of_made;

    *made = depth < DEEP && any(4) > 0;
    if (!*made)
        return predefined();
    if (any(4) == 0)
        return with_room(structure(depth));
    of = nested(depth + 1, &of_made);
    const int way = any(10);
    switch (way) {
    case 4:
    case 5:
        type = vector(of, way == 4);
        break;
    case 6:
        type = subarray(of);
        break;
    case 7:
        MPI_Type_contiguous(1 + any(4), of, &type);
        break;
    case 8:
        MPI_Type_dup(of, &type);
        break;
    case 9:
        type = darray(of);
        break;
    default:
        type = blocks(of, way);
    }
    if (of_made)
        MPI_Type_free(&of);
    return with_room(type);
}

static void check_bcast(MPI_Datatype type, int count, int root)
{
    static unsigned char sent[ARENA], got[ARENA], expected[ARENA], packed[ARENA];
    MPI_Aint lb, extent, lowest, span;
    int bytes, position = 0;

    MPI_Type_size(type, &bytes);
    MPI_Type_get_extent(type, &lb, &extent);
    MPI_Type_get_true_extent(type, &lowest, &span);
    const MPI_Aint all = (count - 1) * extent + span;
    if (!bytes || all + 64 > ARENA)
        return;
    for (MPI_Aint i = 0; i < all + 64; i++) {
        sent[i] = (unsigned char)(i * 7 + i / 253 + root);
        expected[i] = got[i] = rank == root ? sent[i] : (unsigned char)(i * 3 + 1);
    }
    CHECK(!PMPI_Pack(sent + 32 - lowest, count, type, packed, ARENA, &position, MPI_COMM_SELF));
    CHECK(position == count * bytes);
    position = 0;
    CHECK(
        !PMPI_Unpack(packed, ARENA, &position, expected + 32 - lowest, count, type, MPI_COMM_SELF));
    MPI_Bcast(got + 32 - lowest, count, type, root, MPI_COMM_WORLD);
    CHECK(!memcmp(got, expected, (size_t)all + 64));
}

/* Of more dimensions than anybody has, of each two indices of three. */
static void check_dimensions(int dimensions)
{
    enum { MOST = 16 };
    int whole[MOST], part[MOST], start_at[MOST];
    MPI_Datatype type;

    CHECK(dimensions <= MOST);
    for (int i = 0; i < dimensions; i++) {
        whole[i] = 3;
        part[i] = 2;
        start_at[i] = i % 2;
    }
    MPI_Type_create_subarray(dimensions, whole, part, start_at, MPI_ORDER_C, MPI_SHORT, &type);
    MPI_Type_commit(&type);
    for (int times = 0; times < 3; times++)
        check_bcast(type, 1, times % size);
    MPI_Type_free(&type);
}

/* Each of them used once, and each second one time and again. */
static void nested_types(void)
{
    enum { TYPES = 400, TIMES = 12 };

    start();
    rounds(MPI_COMM_WORLD, 100);
    for (int dimensions = 1; dimensions <= 12; dimensions++)
        check_dimensions(dimensions);
    for (int i = 0; i < TYPES; i++) {
        bool made = false;
        MPI_Datatype type;
        while (!made) {
            type = nested(0, &made);
            if (made)
                MPI_Type_commit(&type);
        }
        check_bcast(type, 1, i % size);
        for (int times = 0; i % 2 && times < TIMES; times++)
            check_bcast(type, 1 + times * times, i % size);
        MPI_Type_free(&type);
    }
    finish();
}

const struct weather weather_nested[] = {
    {"nested-types", nested_types},
    {0},
};
