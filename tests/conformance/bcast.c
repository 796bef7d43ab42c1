/* MPI_Bcast: every size, root and sort of datatype. */
#include "conformance.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

enum how { PLAIN, LARGE_COUNT, BOTTOM, HOWS };

static int broadcast(struct cf_buffer *buffer, enum how how, int root, MPI_Comm comm)
{
    MPI_Datatype handle;
    int rc;

    switch (how) {
#if MPI_VERSION >= 4
    case LARGE_COUNT:
        return MPI_Bcast_c(buffer->data, buffer->count, buffer->type->handle, root, comm);
#endif
    case BOTTOM:
        handle = cf_type_absolute(buffer->type, buffer->data, (int)buffer->count);
        rc = MPI_Bcast(MPI_BOTTOM, 1, handle, root, comm);
        MPI_Type_free(&handle);
        return rc;
    default:
        return MPI_Bcast(buffer->data, (int)buffer->count, buffer->type->handle, root, comm);
    }
}

/* `theirs` and `their_count` are what the leaves receive into: the same signature as the root's. */
static void one(MPI_Comm comm, const struct cf_type *type, int64_t count,
                const struct cf_type *theirs, int64_t their_count, int root, enum how how,
                unsigned shift, uint64_t seed)
{
    const unsigned char *data = cf_stream(seed, 0);
    struct cf_buffer got, expected;
    bool leaf = cf_rank != root;

    if (cf_left_out_in_part(seed, count * (int64_t)type->size))
        return;
    cf_case("MPI_Bcast%s, %jd x %s (leaves: %jd x %s), root %d%s", how == LARGE_COUNT ? "_c" : "",
            (intmax_t)count, type->name, (intmax_t)their_count, theirs->name, root,
            how == BOTTOM ? ", MPI_BOTTOM" : "");
    got = cf_buffer_make(CF_RECEIVE, leaf ? theirs : type, leaf ? their_count : count, shift);
    expected = cf_buffer_make(CF_EXPECT, got.type, got.count, shift);
    cf_buffer_put(&expected, data);
    if (!leaf)
        cf_buffer_put(&got, data);
    if (cf_ok(broadcast(&got, how, root, comm)))
        cf_buffer_equal(&got, &expected, leaf ? "leaf's buffer" : "root's buffer");

    if (how == PLAIN && cf_sampled()) {
        got = cf_buffer_make(CF_REFERENCE, got.type, got.count, shift);
        if (!leaf)
            cf_buffer_put(&got, data);
        cf_library.bcast(got.data, (int)got.count, got.type->handle, root, comm);
        cf_buffer_equal(&got, &expected, "the library's own result");
    }
}

static void sizes(MPI_Comm comm)
{
    const struct cf_type *byte = cf_basic_find(MPI_BYTE);
    uint64_t seed = 1000;

    for (size_t i = 0; i < cf_sizes_count; i++)
        for (int root = 0; root < cf_size; root++, seed++)
            /* Large ones at two roots: copying them is what takes the time. */
            if (cf_sizes[i] < 1 << 16 || root == 0 || root == (int)(i % (size_t)cf_size))
                one(comm, byte, cf_sizes[i], byte, cf_sizes[i], root, PLAIN, (unsigned)(seed % 9),
                    seed);
}

static void basic_types(MPI_Comm comm)
{
    static const int counts[] = {0, 1, 2, 7, 129, 5000};
    uint64_t seed = 2000;

    for (size_t t = 0; t < cf_basic_count; t++)
        for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++, seed++)
            one(comm, &cf_basic[t], counts[i], &cf_basic[t], counts[i],
                (int)(seed % (uint64_t)cf_size), PLAIN, 0, seed);
}

static void derived_types(MPI_Comm comm)
{
    static const int counts[] = {0, 1, 2, 3, 30, 900};
    const struct cf_type *i32 = cf_basic_find(MPI_INT), *f64 = cf_basic_find(MPI_DOUBLE);
    const struct cf_type *basic;
    uint64_t seed = 3000;
    int root;

    for (size_t t = 0; t < cf_derived_count; t++) {
        const struct cf_type *type = &cf_derived[t];

        basic = strstr(type->name, "of int") ? i32 : strstr(type->name, "of double") ? f64 : NULL;
        for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++, seed++) {
            int64_t count = counts[i], basics;

            root = (int)(seed % (uint64_t)cf_size);
            one(comm, type, count, type, count, root, PLAIN, 0, seed);
            if (count <= 30)
                one(comm, type, count, type, count, root, BOTTOM, 0, seed);
            if (!basic)
                continue;
            /* The same signature, laid out otherwise: one side has gaps and the other none. */
            basics = count * (int64_t)(type->size / basic->size);
            one(comm, type, count, basic, basics, root, PLAIN, 0, seed);
            one(comm, basic, basics, type, count, root, PLAIN, 0, seed);
        }
    }
}

/* One element that is as big as what is otherwise many. */
static void big_elements(MPI_Comm comm)
{
    static const int counts[] = {1000, 20000, 300001};
    const struct cf_type *i32 = cf_basic_find(MPI_INT);

    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        struct cf_type big = cf_type_contiguous(i32, counts[i]);
        struct cf_type gaps = cf_type_contiguous(&cf_derived[0], counts[i] / 6);
        int root = (int)(i % (size_t)cf_size);

        one(comm, &big, 1, &big, 1, root, PLAIN, 0, 4000 + i);
        one(comm, &big, 2, i32, 2 * counts[i], root, PLAIN, 0, 4010 + i);
        one(comm, i32, counts[i], &big, 1, root, PLAIN, 0, 4020 + i);
        one(comm, &gaps, 1, i32, counts[i] / 6 * 6, root, PLAIN, 0, 4030 + i);
        one(comm, i32, counts[i] / 6 * 6, &gaps, 1, root, PLAIN, 0, 4040 + i);
        cf_type_free(&gaps);
        cf_type_free(&big);
    }
}

/* Handles that have been freed come again, as other types; some of these are long enough for collx
 * to look into them. */
static void reused_handles(MPI_Comm comm)
{
    enum { LONGEST = 4096 };
    static int got[LONGEST];

    for (int length = 1; length <= LONGEST; length *= 2) {
        MPI_Datatype type;

        cf_case("MPI_Bcast, a type of %d ints, made when one of %d had been freed", length,
                length / 2);
        MPI_Type_contiguous(length, MPI_INT, &type);
        MPI_Type_commit(&type);
        for (int i = 0; i < LONGEST; i++)
            got[i] = cf_rank == 0 ? length + i : -1;
        if (cf_ok(MPI_Bcast(got, 1, type, 0, comm)))
            for (int i = 0; i < LONGEST; i++) {
                int expected = cf_rank == 0 || i < length ? length + i : -1;
                if (got[i] != expected)
                    cf_fail("element %d is %d, expected %d", i, got[i], expected);
            }
        MPI_Type_free(&type);
    }
}

/* Elements without data cost nothing, however many they are. */
static void no_data(MPI_Comm comm)
{
    struct cf_type empty = cf_type_contiguous(cf_basic_find(MPI_INT), 0);

    cf_case("MPI_Bcast, INT_MAX elements without data");
    cf_ok(MPI_Bcast(NULL, INT_MAX, empty.handle, cf_size - 1, comm));
#if MPI_VERSION >= 4
    cf_case("MPI_Bcast_c, 2^40 elements without data");
    cf_ok(MPI_Bcast_c(NULL, (MPI_Count)1 << 40, empty.handle, 0, comm));
#endif
    cf_case("MPI_Bcast, no elements, no buffer");
    cf_ok(MPI_Bcast(NULL, 0, MPI_INT, 0, comm));
    cf_type_free(&empty);
}

static void large_count(MPI_Comm comm)
{
#if MPI_VERSION >= 4
    const struct cf_type *i32 = cf_basic_find(MPI_INT);

    for (size_t i = 0; i < cf_sizes_count; i++) {
        int root = (int)(i % (size_t)cf_size);

        one(comm, i32, cf_sizes[i] / 4, i32, cf_sizes[i] / 4, root, LARGE_COUNT, 0, 5000 + i);
    }
    for (size_t t = 0; t < cf_derived_count; t++)
        one(comm, &cf_derived[t], 11, &cf_derived[t], 11, 0, LARGE_COUNT, 0, 5500 + t);
#else
    (void)comm;
#endif
}

/* One after the other without a pause: a fast rank must not overwrite what a slow one still
 * reads.  The root changes, and sometimes it does not. */
static void storm(MPI_Comm comm)
{
    const struct cf_type *byte = cf_basic_find(MPI_BYTE);
    struct cf_random random = {7};
    int rounds = cf_quick ? 300 : cf_size > 4 ? 1000 : 3000;

    for (int i = 0; i < rounds; i++) {
        int64_t size = (int64_t)cf_random_below(&random, i % 20 == 0 ? 70000 : 300);
        int root = (int)cf_random_below(&random, i % 100 < 50 ? (uint64_t)cf_size : 1);

        one(comm, byte, size, byte, size, root, PLAIN, 0, 6000 + (uint64_t)i);
    }
}

void cf_test_bcast(void)
{
    MPI_Comm comm = cf_world_dup();

    sizes(comm);
    basic_types(comm);
    derived_types(comm);
    big_elements(comm);
    reused_handles(comm);
    no_data(comm);
    large_count(comm);
    storm(comm);
    MPI_Comm_free(&comm);
}
