/* Programs with types that are not everyday ones: cases of weather.c. */
#include "tests/programs/weather.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* One element of more than 2 GiB: how programs without MPI 4 send that much. */
static void big_element(void)
{
    enum { PIECE = 1100 << 20 };
    const size_t size_of_both = 2ull * PIECE;
    char *data =
        mmap(NULL, size_of_both, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MPI_Datatype piece, both;

    CHECK(data != MAP_FAILED);
    /* In small pages most of the time would go into their faults. */
    madvise(data, size_of_both, MADV_HUGEPAGE);
    start();
    rounds(MPI_COMM_WORLD, 10);
    MPI_Type_contiguous(PIECE, MPI_CHAR, &piece);
    MPI_Type_contiguous(2, piece, &both);
    MPI_Type_commit(&both);
    data[0] = data[size_of_both - 1] = rank == 0 ? 7 : 0;
    MPI_Bcast(data, 1, both, 0, MPI_COMM_WORLD);
    CHECK(data[0] == 7 && data[size_of_both - 1] == 7);
    MPI_Type_free(&piece);
    MPI_Type_free(&both);
    munmap(data, size_of_both);
    finish();
}

static void add_one(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)type;
    CHECK(*count == 1);
    *(double *)inout += *(double *)in;
}

/* One element with a gap behind it that no memory would be enough for: the column of a file. */
static void huge_extent(void)
{
    const MPI_Aint extent = (MPI_Aint)1 << 46;
    MPI_Datatype column;
    MPI_Op op;

    start();
    MPI_Type_create_resized(MPI_DOUBLE, 0, extent, &column);
    MPI_Type_commit(&column);
    MPI_Op_create(add_one, 1, &op);
    for (int i = 0; i < 20; i++) {
        double one = 1, sum = 0;
        CHECK(MPI_Allreduce(&one, &sum, 1, column, op, MPI_COMM_WORLD) == MPI_SUCCESS);
        CHECK(sum == size);
    }
    MPI_Op_free(&op);
    MPI_Type_free(&column);
    finish();
}

/* Types that the compilers of an MPI library may have, or not. */
static void rare_types(void)
{
    enum { PARTS = 2, CALLS = 50 };

    start();
    rounds(MPI_COMM_WORLD, 100);
    for (int call = 0; call < CALLS; call++) {
        double in[PARTS] = {rank, call}, out[PARTS] = {0};
        MPI_Allreduce(in, out, 1, MPI_CXX_DOUBLE_COMPLEX, MPI_SUM, MPI_COMM_WORLD);
        CHECK(out[0] == size * (size - 1) / 2.0 && out[1] == size * call);
    }
    finish();
}

/* Which of two types that are the same to MPI a rank has for its numbers is its own affair. */
static void types_of_kinds(void)
{
    enum { MOST = 3000, CALLS = 40 };
    static double real[2][MOST];
    static float single[2][MOST];
    static int32_t integer[2][MOST];
    MPI_Datatype of_real, of_single, of_integer, of_complex;

    start();
    rounds(MPI_COMM_WORLD, 5000);
    MPI_Type_create_f90_real(15, 307, &of_real);
    MPI_Type_create_f90_real(6, 37, &of_single);
    MPI_Type_create_f90_integer(9, &of_integer);
    MPI_Type_create_f90_complex(15, 307, &of_complex);
    for (int call = 0; call < CALLS; call++) {
        const bool named = (call + rank) % 3 == 0;
        const int count = call % 2 ? MOST : 1 + call;
        for (int i = 0; i < count; i++) {
            real[0][i] = rank + i;
            single[0][i] = (float)(rank * i);
            integer[0][i] = rank - i;
        }
        MPI_Allreduce(real[0], real[1], count, named ? MPI_DOUBLE_PRECISION : of_real, MPI_SUM,
                      MPI_COMM_WORLD);
        MPI_Allreduce(single[0], single[1], count, named ? MPI_REAL : of_single, MPI_MAX,
                      MPI_COMM_WORLD);
        MPI_Allreduce(integer[0], integer[1], count, named ? MPI_INTEGER : of_integer, MPI_MIN,
                      MPI_COMM_WORLD);
        for (int i = 0; i < count; i++)
            CHECK(real[1][i] == size * (size - 1) / 2.0 + (double)size * i &&
                  single[1][i] == (float)((size - 1) * i) && integer[1][i] == -i);
        MPI_Allreduce(real[0], real[1], count / 2, named ? MPI_DOUBLE_COMPLEX : of_complex, MPI_SUM,
                      MPI_COMM_WORLD);
        MPI_Bcast(real[0], count, named ? MPI_DOUBLE_PRECISION : of_real, call % size,
                  MPI_COMM_WORLD);
        for (int i = 0; i < count; i++)
            CHECK(real[1][i] == size * (size - 1) / 2.0 + (double)size * i &&
                  real[0][i] == call % size + i);
    }
    finish();
}

/* Of an MPI library whose MPI_INTEGER has 8 bytes. */
static void wide_integers(void)
{
    enum { COUNT = 100 };
    int64_t in[COUNT], out[COUNT];

    start();
    for (int i = 0; i < COUNT; i++)
        in[i] = ((int64_t)i << 32) - 1 - rank;
    MPI_Allreduce(in, out, COUNT, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < COUNT; i++)
        CHECK(out[i] == size * (((int64_t)i << 32) - 1) - size * (size - 1) / 2);
    finish();
}

/* Where mpi.h and the MPI library are not of one release. */
static void another_release(void)
{
    enum { COUNT = 100 };
    double in[COUNT], out[COUNT];
    MPI_Datatype pair;

    start();
    MPI_Type_contiguous(2, MPI_DOUBLE, &pair);
    MPI_Type_commit(&pair);
    for (int call = 0; call < 20; call++) {
        for (int i = 0; i < COUNT; i++)
            in[i] = i + call, out[i] = -1;
        MPI_Allreduce(in, out, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        for (int i = 0; i < COUNT; i++)
            CHECK(out[i] == size * in[i]);
#ifdef MPICH
        const MPI_Op equal = (MPI_Op)0x5800000f; /* MPIX_EQUAL */
        const int is_equal = call % 3 != 0;
        int found;
        in[COUNT - 1] += is_equal ? 0 : rank;
        for (int of_pairs = 0; of_pairs < 2; of_pairs++) {
            memset(out, -1, sizeof out);
            MPI_Allreduce(in, out, of_pairs ? COUNT / 2 : COUNT, of_pairs ? pair : MPI_DOUBLE,
                          equal, MPI_COMM_WORLD);
            memcpy(&found, out, sizeof found);
            CHECK(found == is_equal);
            for (size_t i = sizeof found; i < sizeof out; i++)
                CHECK(((char *)out)[i] == -1);
        }
#endif
    }
    MPI_Type_free(&pair);
    finish();
}

/* Each in a handle that another one has had before, with other gaps. */
static void types_that_come_and_go(void)
{
    enum { TURNS = 300, COUNT = 40, ROOM = 1 << 16 };
    static char in[ROOM], out[ROOM], was[ROOM];

    start();
    rounds(MPI_COMM_WORLD, 100);
    for (int turn = 0; turn < TURNS; turn++) {
        const int parts = 1 + turn % 5, step = parts + turn % 3, bytes = 1 + turn % 9;
        MPI_Datatype part, vector, type;
        MPI_Type_contiguous(bytes, MPI_CHAR, &part);
        MPI_Type_vector(parts, 1, turn % 3 + 1, part, &vector);
        MPI_Type_create_resized(vector, 0, (MPI_Aint)step * 3 * bytes, &type);
        MPI_Type_commit(&type);
        const int count = turn % 4 ? COUNT : 1, extent = step * 3 * bytes;
        CHECK(count * extent <= ROOM);
        for (int i = 0; i < ROOM; i++) {
            in[i] = (char)(rank == turn % size ? i * 7 + turn : 55);
            was[i] = in[i];
            out[i] = (char)(i * 7 + turn);
        }
        MPI_Bcast(in, count, type, turn % size, MPI_COMM_WORLD);
        for (int i = 0; i < ROOM; i++) {
            const int at = i % extent, run = at / bytes;
            const bool sent =
                i < count * extent && run % (turn % 3 + 1) == 0 && run / (turn % 3 + 1) < parts;
            CHECK(in[i] == (sent ? out[i] : was[i]));
        }
        MPI_Type_free(&type);
        MPI_Type_free(&vector);
        MPI_Type_free(&part);
    }
    finish();
}

static void add_threes(void *in, void *inout, int *count, MPI_Datatype *type)
{
    short *from = in, *to = inout;

    (void)type;
    for (int i = 0; i < 3 * *count; i++)
        to[i] = (short)(to[i] + from[i]);
}

/* Many types that a program never frees; the last ones are what they are called. */
static void types_that_stay(void)
{
    enum { TYPES = 2000, NUMBERS = 6 };
    MPI_Datatype type[TYPES], of[] = {MPI_INT, MPI_SHORT};
    MPI_Op add;

    start();
    MPI_Op_create(add_threes, 1, &add);
    for (int turn = 0; turn < TYPES; turn++) {
        const int kind = turn % 2, root = turn / 2 % size;
        int copied[NUMBERS];
        short rows[NUMBERS], sum[NUMBERS] = {0};
        if (kind)
            MPI_Type_contiguous(3, of[1], &type[turn]);
        else
            MPI_Type_dup(of[0], &type[turn]);
        MPI_Type_commit(&type[turn]);
        for (int i = 0; i < NUMBERS; i++) {
            copied[i] = rank == root ? turn + i : -1;
            rows[i] = (short)(rank + i);
        }
        if (kind) {
            CHECK(!MPI_Allreduce(rows, sum, NUMBERS / 3, type[turn], add, MPI_COMM_WORLD));
            CHECK(!MPI_Bcast(rows, NUMBERS / 3, type[turn], root, MPI_COMM_WORLD));
        } else {
            CHECK(!MPI_Bcast(copied, NUMBERS, type[turn], root, MPI_COMM_WORLD));
        }
        for (int i = 0; i < NUMBERS; i++)
            CHECK(kind ? rows[i] == root + i && sum[i] == size * (size - 1) / 2 + size * i
                       : copied[i] == turn + i);
    }
    for (int turn = 0; turn < TYPES; turn++)
        MPI_Type_free(&type[turn]);
    MPI_Op_free(&add);
    finish();
}

const struct weather weather_types[] = {
    {"big-element", big_element},
    {"huge-extent", huge_extent},
    {"rare-types", rare_types},
    {"types-of-kinds", types_of_kinds},
    {"wide-integers", wide_integers},
    {"types-that-come-and-go", types_that_come_and_go},
    {"types-that-stay", types_that_stay},
    {"another-release", another_release},
    {0},
};
