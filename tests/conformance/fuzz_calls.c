/* The single calls of the fuzzer: random types, ops and layouts, and what has to come out. */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    PAGE = 1 << 16,    /* at least a page */
    BACKGROUND = 0xee, /* of gaps and guards */
    APART = 1000,      /* elements of a type whose elements overlap the next ones */
    USER_TYPES = 3,
    REDUCTIONS_MAX = 80 * CF_OPS,
};

/* op NULL: the user's. */
struct reduction {
    const struct cf_type *type;
    const struct cf_op *op;
};

static struct reduction reductions[REDUCTIONS_MAX];
static size_t reductions_count;
static struct cf_type user_types[USER_TYPES];
static MPI_Op user_op;

/* --- an op that does not commute ------------------------------------------------------------ */

/* Functions x -> a*x + b, modulo 2^64: associative and exact, so that a wrong order shows. */
static void compose_pairs(const uint64_t *in, uint64_t *inout, size_t pairs)
{
    for (size_t i = 0; i < 2 * pairs; i += 2) {
        inout[i + 1] += inout[i] * in[i + 1];
        inout[i] *= in[i];
    }
}

static void compose(void *in, void *inout, int *count, MPI_Datatype *handle)
{
    const struct cf_type *type = user_types;

    while (type < user_types + USER_TYPES && type->handle != *handle)
        type++;
    if (type == user_types + USER_TYPES) {
        cf_fail("the op was called with a wrong datatype");
        return;
    }
    for (ptrdiff_t at = 0; at < *count * type->extent; at += type->extent)
        compose_pairs((const uint64_t *)((char *)in + at), (uint64_t *)((char *)inout + at),
                      type->size / 16);
}

static void user_init(void)
{
    const struct cf_type *word = cf_basic_find(MPI_UINT64_T);
    MPI_Datatype dense;

    user_types[0] = cf_type_contiguous(word, 2);
    user_types[1] = cf_type_contiguous(word, 512);
    user_types[2] = cf_type_contiguous(word, 2);
    strcpy(user_types[2].name, "2 of MPI_UINT64_T and a gap");
    dense = user_types[2].handle;
    user_types[2].extent = 32;
    MPI_Type_create_resized(dense, 0, 32, &user_types[2].handle);
    MPI_Type_commit(&user_types[2].handle);
    MPI_Type_free(&dense);
    MPI_Op_create(compose, false, &user_op);
}

static void reductions_init(void)
{
    for (size_t t = 0; t < cf_basic_count; t++)
        for (int o = 0; o < CF_OPS; o++)
            /* Open MPI 4.1 adds characters as unsigned numbers, and up to 255 where it has a vector
             * of them: the result depends on how a buffer is cut into parts. */
            if ((cf_op[o].kind != CF_SUM || cf_basic[t].handle != MPI_CHARACTER) &&
                cf_op_allowed(&cf_op[o], &cf_basic[t]))
                reductions[reductions_count++] = (struct reduction){&cf_basic[t], &cf_op[o]};
}

void fuzz_calls_init(void)
{
    user_init();
    reductions_init();
}

void fuzz_calls_finish(void)
{
    MPI_Op_free(&user_op);
    for (int i = 0; i < USER_TYPES; i++)
        cf_type_free(&user_types[i]);
}

/* --- buffers -------------------------------------------------------------------------------- */

static unsigned char *arena_map(void)
{
    unsigned char *map = mmap(NULL, CF_ARENA + 2 * PAGE, PROT_NONE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (map == MAP_FAILED || mprotect(map + PAGE, CF_ARENA, PROT_READ | PROT_WRITE) < 0) {
        perror("fuzz: no memory for buffers");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    return map + PAGE;
}

void fuzz_buffers_init(struct fuzz_thread *t)
{
    t->send = arena_map();
    t->receive = arena_map();
    t->expect = arena_map();
    t->sum = aligned_alloc(64, 2 * FUZZ_BYTES_MAX);
    t->mine = aligned_alloc(64, 2 * FUZZ_BYTES_MAX);
}

/* How many elements can be had at most, in an arena and without one on top of another. */
static int64_t most(const struct cf_type *type)
{
    ptrdiff_t first, end;

    cf_buffer_span(type, 1, &first, &end);
    if (end - first > type->extent)
        return APART;
    return type->extent > 0 ? (CF_ARENA - PAGE) / type->extent : FUZZ_BYTES_MAX;
}

/* At one end of the arena, or the other: a byte too far is a crash there, and is found by its guard
 * on the other side. */
static struct cf_buffer place(unsigned char *arena, const struct cf_type *type, int64_t count,
                              bool at_end)
{
    struct cf_buffer buffer = {.type = type, .count = count};
    ptrdiff_t alignment = (type->extent | 16) & -(type->extent | 16), first, end, at;

    cf_buffer_span(type, count, &first, &end);
    if (at_end) {
        at = (CF_ARENA - end) & -alignment;
        buffer.start = arena + at + first - CF_GUARD;
        buffer.total = (size_t)(CF_ARENA - at - first + CF_GUARD);
    } else {
        at = (-first + alignment - 1) & -alignment;
        buffer.start = arena;
        buffer.total = (size_t)(at + end + CF_GUARD);
    }
    buffer.data = arena + at;
    memset(buffer.start, BACKGROUND, buffer.total);
    return buffer;
}

/* --- the collectives ------------------------------------------------------------------------ */

void fuzz_barrier(struct fuzz_thread *t, const struct fuzz_group *g, uint64_t time)
{
    cf_case("%s: MPI_Barrier", t->where);
    cf_show(t->id, time);
    if (cf_ok(MPI_Barrier(g->comm)))
        for (int i = 0; i < g->size; i++)
            if (cf_seen(t->id, g->world[i]) < time)
                cf_fail("left before rank %d had come", i);
}

/* The ints of one signature, as this rank likes to have them. */
static const struct cf_type *layout_of_ints(struct fuzz_thread *t, int64_t ints)
{
    const struct cf_type *type = &cf_derived[cf_random_below(&t->own, cf_derived_count)];
    int64_t in_one = (int64_t)(type->size / sizeof(int));

    if (!strstr(type->name, "of int") || ints % in_one != 0 || ints / in_one > most(type))
        return cf_basic_find(MPI_INT);
    return type;
}

void fuzz_bcast(struct fuzz_thread *t, struct fuzz_group *g, int64_t bytes, bool library_too)
{
    enum { BYTES, ONE_TYPE, INTS, SORTS, TWELVE_INTS = 12 * sizeof(int) };
    int sort = (int)cf_random_below(&g->agreed, SORTS);
    int root = (int)cf_random_below(&g->agreed, (uint64_t)g->size);
    uint64_t which = cf_random_below(&g->agreed, cf_basic_count + cf_derived_count);
    const unsigned char *data = cf_stream(cf_random_next(&g->agreed), g->world[root]);
    const struct cf_type *type = cf_basic_find(MPI_BYTE);
    bool at_end = cf_random_below(&t->own, 2);
    struct cf_buffer got, expected;
    int64_t count;

    if (sort == INTS) {
        bytes -= bytes % TWELVE_INTS;
        type = layout_of_ints(t, bytes / (int64_t)sizeof(int));
    } else if (sort == ONE_TYPE) {
        type = which < cf_basic_count ? &cf_basic[which] : &cf_derived[which - cf_basic_count];
    }
    count = type->size > 0 ? bytes / (int64_t)type->size : bytes;
    count = count < most(type) ? count : most(type);
    cf_case("%s: MPI_Bcast, %jd bytes, %jd x %s, root %d", t->where,
            (intmax_t)(count * (int64_t)type->size), (intmax_t)count, type->name, root);
    expected = place(t->expect, type, count, at_end);
    cf_buffer_put(&expected, data);
    for (int by_library = 0; by_library <= library_too; by_library++) {
        got = place(t->receive, type, count, at_end);
        if (g->rank == root)
            cf_buffer_put(&got, data);
        if (cf_ok((by_library ? cf_library.bcast : MPI_Bcast)(got.data, (int)count, type->handle,
                                                              root, g->comm)))
            cf_buffer_equal(&got, &expected, by_library ? "the library's own result" : "buffer");
    }
}

static void contribution(const struct reduction *reduction, void *elements, int64_t count,
                         uint64_t values, int world)
{
    if (reduction->op)
        cf_values(reduction->type, reduction->op, elements, count, values, world);
    else
        memcpy(elements, cf_stream(values, world), (size_t)count * reduction->type->size);
}

/* x0 op x1 op … in the order of the communicator's ranks. */
static void expect(struct fuzz_thread *t, const struct fuzz_group *g,
                   const struct reduction *reduction, int64_t count, uint64_t values)
{
    contribution(reduction, t->sum, count, values, g->world[g->size - 1]);
    for (int i = g->size - 2; i >= 0; i--) {
        contribution(reduction, t->mine, count, values, g->world[i]);
        if (reduction->op)
            cf_values_reduce(reduction->type, reduction->op, t->mine, t->sum, count);
        else
            compose_pairs(t->mine, t->sum, (size_t)count * reduction->type->size / 16);
    }
}

static void put(const struct reduction *reduction, const struct cf_buffer *buffer,
                const void *elements)
{
    if (reduction->op)
        cf_values_put(buffer, elements);
    else
        cf_buffer_put(buffer, elements);
}

void fuzz_allreduce(struct fuzz_thread *t, struct fuzz_group *g, int64_t bytes, bool library_too)
{
    uint64_t which = cf_random_next(&g->agreed), values = cf_random_next(&g->agreed);
    struct reduction reduction = reductions[which / 8 % reductions_count];
    bool in_place = cf_random_below(&g->agreed, 3) == 0;
    bool at_end = cf_random_below(&t->own, 2);
    struct cf_buffer send, receive, expected;
    MPI_Op op;
    int64_t count;

    if (which % 8 < 2)
        reduction = (struct reduction){&user_types[which / 8 % USER_TYPES], NULL};
    op = reduction.op ? reduction.op->handle : user_op;
    count = bytes / (int64_t)reduction.type->size;
    cf_case("%s: MPI_Allreduce, %jd bytes, %jd x %s, %s%s", t->where,
            (intmax_t)(count * (int64_t)reduction.type->size), (intmax_t)count,
            reduction.type->name, reduction.op ? reduction.op->name : "user's op",
            in_place ? ", in place" : "");
    expect(t, g, &reduction, count, values);
    contribution(&reduction, t->mine, count, values, cf_rank);
    for (int by_library = 0; by_library <= library_too; by_library++) {
        send = place(t->send, reduction.type, count, !at_end);
        receive = place(t->receive, reduction.type, count, at_end);
        put(&reduction, in_place ? &receive : &send, t->mine);
        if (!cf_ok((by_library ? cf_library.allreduce
                               : MPI_Allreduce)(in_place ? MPI_IN_PLACE : send.data, receive.data,
                                                (int)count, reduction.type->handle, op, g->comm)))
            continue;
        if (!in_place) {
            expected = place(t->expect, reduction.type, count, !at_end);
            put(&reduction, &expected, t->mine);
            cf_buffer_equal(&send, &expected, "send buffer");
        }
        expected = place(t->expect, reduction.type, count, at_end);
        put(&reduction, &expected, t->sum);
        for (int i = 0; i < 2; i++) {
            cf_values_clear_padding(i ? &expected : &receive);
            cf_values_clear_signs(i ? &expected : &receive);
        }
        cf_buffer_equal(&receive, &expected,
                        by_library ? "the library's own result" : "receive buffer");
    }
}
