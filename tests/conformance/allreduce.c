/* MPI_Allreduce with the predefined ops. */
#include "conformance.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

struct how {
    bool in_place, large_count;
};

static void *sum, *mine; /* elements, aligned; CF_DATA_MAX bytes each */

/* x0 op x1 op … in the order of ranks, by the library's own kernels. */
static void expect(const struct cf_type *type, const struct cf_op *op, int64_t count, uint64_t seed)
{
    cf_values(type, op, sum, count, seed, cf_size - 1);
    for (int i = cf_size - 2; i >= 0; i--) {
        cf_values(type, op, mine, count, seed, i);
        cf_values_reduce(type, op, mine, sum, count);
    }
}

static int reduce(const void *send, void *receive, const struct cf_buffer *buffer,
                  const struct cf_op *op, struct how how, MPI_Comm comm)
{
    MPI_Datatype handle = buffer->type->handle;

#if MPI_VERSION >= 4
    if (how.large_count)
        return MPI_Allreduce_c(send, receive, buffer->count, handle, op->handle, comm);
#endif
    (void)how;
    return MPI_Allreduce(send, receive, (int)buffer->count, handle, op->handle, comm);
}

static void one(MPI_Comm comm, const struct cf_type *type, const struct cf_op *op, int64_t count,
                struct how how, uint64_t seed)
{
    unsigned shift = (unsigned)(seed % 5) * (unsigned)type->extent;
    struct cf_buffer send, receive, expected;
    int rc;

    if (cf_left_out_in_part(seed, count * (int64_t)type->size))
        return;
    cf_case("MPI_Allreduce%s, %s, %jd x %s%s", how.large_count ? "_c" : "", op->name,
            (intmax_t)count, type->name, how.in_place ? ", in place" : "");
    cf_values(type, op, mine, count, seed, cf_rank);
    send = cf_buffer_make(CF_SEND, type, count, shift);
    receive = cf_buffer_make(CF_RECEIVE, type, count, shift);
    cf_values_put(how.in_place ? &receive : &send, mine);
    rc = reduce(how.in_place ? MPI_IN_PLACE : send.data, receive.data, &receive, op, how, comm);

    expected = cf_buffer_make(CF_EXPECT, type, count, shift);
    if (!how.in_place) {
        cf_values_put(&expected, mine);
        cf_buffer_equal(&send, &expected, "send buffer");
    }
    cf_values_clear_padding(&receive);
    cf_same(cf_ok(rc) ? cf_hash(0, receive.start, receive.total) : 0);
    cf_values_clear_signs(&receive);
    if (cf_turn(seed)) {
        expect(type, op, count, seed);
        cf_values_put(&expected, sum);
        cf_values_clear_padding(&expected);
        cf_values_clear_signs(&expected);
        cf_buffer_equal(&receive, &expected, "receive buffer");
    }

    if (!(cf_routed && cf_library_errs(type, op)) && cf_sampled()) {
        struct cf_buffer reference = cf_buffer_make(CF_REFERENCE, type, count, shift);

        cf_values(type, op, mine, count, seed, cf_rank);
        cf_values_put(how.in_place ? &reference : &send, mine);
        cf_library.allreduce(how.in_place ? MPI_IN_PLACE : send.data, reference.data, (int)count,
                             type->handle, op->handle, comm);
        cf_values_clear_padding(&reference);
        cf_values_clear_signs(&reference);
        cf_buffer_equal(&receive, &reference, "beside the library's own result");
    }
}

static void all_ops_and_types(MPI_Comm comm)
{
    static const int counts[] = {1, 6, 67, 2500};
    size_t n = cf_quick ? 1 : sizeof counts / sizeof counts[0];
    uint64_t seed = 10000;

    for (size_t t = 0; t < cf_basic_count; t++)
        for (int o = 0; o < CF_OPS; o++) {
            if (!cf_op_allowed(&cf_op[o], &cf_basic[t]))
                continue;
            for (size_t i = 0; i < n; i++, seed++) {
                if (cf_left_out(seed))
                    continue;
                one(comm, &cf_basic[t], &cf_op[o], counts[i],
                    (struct how){.in_place = seed % 3 == 0}, seed);
            }
        }
}

/* What compilers make of a loop over numbers has a beginning, a middle and an end. */
static void all_counts(MPI_Comm comm)
{
    static const enum cf_op_kind ops[] = {CF_SUM, CF_PROD, CF_MAX, CF_MIN, CF_BXOR, CF_LAND};
    uint64_t seed = 20000;

    for (size_t t = 0; t < cf_basic_count; t++) {
        const struct cf_type *type = &cf_basic[t];

        if (!strstr(type->name, "_T") && type->handle != MPI_FLOAT && type->handle != MPI_DOUBLE)
            continue;
        for (size_t o = 0; o < sizeof ops / sizeof ops[0]; o++) {
            const struct cf_op *op = &cf_op[ops[o]];

            if (!cf_op_allowed(op, type))
                continue;
            for (int count = 0; count <= 36; count += cf_quick ? 36 : 1, seed++)
                if (!cf_left_out(seed))
                    one(comm, type, op, count, (struct how){.in_place = count % 4 == 3}, seed);
        }
    }
}

static void sizes(MPI_Comm comm)
{
    static const enum cf_op_kind ops[] = {CF_SUM, CF_MAX, CF_BXOR};
    const struct cf_type *types[] = {cf_basic_find(MPI_INT), cf_basic_find(MPI_DOUBLE),
                                     cf_basic_find(MPI_BYTE)};
    uint64_t seed = 30000;

    for (size_t i = 0; i < cf_sizes_count; i++)
        for (size_t t = 0; t < 3; t++, seed++) {
            int64_t count = cf_sizes[i] / types[t]->extent;

            if (cf_sizes[i] > 4 << 20 || (cf_quick && i % 3 != t) ||
                (cf_sizes[i] > 1 << 19 && (i % 3 != t || cf_left_out(i / 3))))
                continue;
            one(comm, types[t], &cf_op[ops[t]], count, (struct how){.in_place = false}, seed);
            if (cf_sizes[i] <= 1 << 19)
                one(comm, types[t], &cf_op[ops[t]], count, (struct how){.in_place = true}, seed);
        }
}

static void large_count(MPI_Comm comm)
{
#if MPI_VERSION >= 4
    static const int counts[] = {0, 1, 8, 100, 10000, 70000};
    const struct cf_type *types[] = {cf_basic_find(MPI_INT), cf_basic_find(MPI_DOUBLE_INT)};
    const struct cf_op *ops[] = {&cf_op[CF_SUM], &cf_op[CF_MAXLOC]};
    uint64_t seed = 40000;

    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        for (size_t t = 0; t < 2; t++, seed++)
            one(comm, types[t], ops[t], counts[i],
                (struct how){.large_count = true, .in_place = i % 2}, seed);
#else
    (void)comm;
#endif
}

static void no_data(MPI_Comm comm)
{
    cf_case("MPI_Allreduce, no elements, no buffers");
    cf_ok(MPI_Allreduce(NULL, NULL, 0, MPI_INT, MPI_SUM, comm));
    cf_case("MPI_Allreduce, no elements, in place");
    cf_ok(MPI_Allreduce(MPI_IN_PLACE, NULL, 0, MPI_DOUBLE, MPI_MAX, comm));
}

/* One after the other without a pause, ranks getting out of step as they please. */
static void storm(MPI_Comm comm)
{
    const struct cf_type *f64 = cf_basic_find(MPI_DOUBLE), *i32 = cf_basic_find(MPI_INT);
    int rounds = cf_quick ? 50 : cf_size > 4 ? 400 : 2000;
    struct cf_random random = {8};

    for (int i = 0; i < rounds; i++) {
        int64_t count = (int64_t)cf_random_below(&random, i % 25 == 0 ? 9000 : 40);

        one(comm, i % 2 ? f64 : i32, &cf_op[CF_SUM], count, (struct how){.in_place = i % 5 == 0},
            50000 + (uint64_t)i);
    }
}

void cf_test_allreduce(void)
{
    MPI_Comm comm = cf_world_dup();

    sum = cf_memory(CF_DATA_MAX);
    mine = cf_memory(CF_DATA_MAX);
    all_ops_and_types(comm);
    all_counts(comm);
    sizes(comm);
    large_count(comm);
    no_data(comm);
    storm(comm);
    cf_memory_free(sum, CF_DATA_MAX);
    cf_memory_free(mine, CF_DATA_MAX);
    MPI_Comm_free(&comm);
}
