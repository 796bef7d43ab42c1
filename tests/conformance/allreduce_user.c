/* MPI_Allreduce with ops of the user's own, on types of the user's own.
 *
 * The ops compose functions x -> a*x + b (modulo 2^64): associative, not commutative, and exact, so
 * that a wrong order shows.
 */
#include "conformance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where a and b of one element are. */
struct layout {
    struct cf_type type;
    ptrdiff_t a, b;
    int pairs;  /* (a, b) in one element, 16 bytes apart */
    bool whole; /* the op assigns whole elements, with the gaps around its numbers */
};

/* What the op is to expect; MPI gives it no argument of our own. */
static const struct layout *now;
static MPI_Datatype now_handle;
static ptrdiff_t now_base; /* of elements at absolute addresses */
static bool commutative;
static bool by_collx; /* the call that is under way */
static bool misused;

static uint64_t *at(const void *elements, int64_t i, ptrdiff_t offset)
{
    return (uint64_t *)((char *)elements + now_base + i * now->type.extent + offset);
}

static void combine(const void *in, void *inout, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        if (now->whole) {
            memcpy(at(inout, i, 0), at(in, i, 0), (size_t)now->a);
            memcpy(at(inout, i, now->a + 16), at(in, i, now->a + 16),
                   (size_t)(now->type.extent - now->a - 16));
        }
        for (int p = 0; p < now->pairs; p++) {
            uint64_t a1 = *at(in, i, now->a + 16 * p), b1 = *at(in, i, now->b + 16 * p);
            uint64_t *a2 = at(inout, i, now->a + 16 * p), *b2 = at(inout, i, now->b + 16 * p);

            *b2 = commutative ? b1 + *b2 : *a2 * b1 + *b2;
            *a2 = commutative ? a1 ^ *a2 : a1 * *a2;
        }
    }
}

/* collx lays elements out like the program's own, which begin at multiples of 16: data may need
 * that alignment elsewhere than where they begin.  MPI libraries look at their beginning alone.
 * The left ones may be the program's own. */
static bool is_aligned(const void *elements, bool is_left)
{
    return (uintptr_t)at(elements, 0, now->a) % 8 == 0 &&
           (!by_collx || is_left || (uintptr_t)elements % 16 == 0);
}

static void compose(void *in, void *inout, int *count, MPI_Datatype *type)
{
    if (*type != now_handle || *count < 0 || !is_aligned(in, true) || !is_aligned(inout, false)) {
        misused = true;
        return;
    }
    combine(in, inout, *count);
}

#if MPI_VERSION >= 4
static void compose_large(void *in, void *inout, MPI_Count *count, MPI_Datatype *type)
{
    if (*type != now_handle || *count < 0) {
        misused = true;
        return;
    }
    combine(in, inout, *count);
}
#endif

enum how { PLAIN, IN_PLACE, LARGE_COUNT, BOTTOM };

static int reduce(struct cf_buffer *send, struct cf_buffer *receive, MPI_Op op, enum how how,
                  MPI_Comm comm)
{
    int count = (int)receive->count, rc;

    switch (how) {
    case BOTTOM:
        now_handle = cf_type_absolute(&now->type, receive->data, 1);
        now_base = (ptrdiff_t)receive->data;
        rc = MPI_Allreduce(MPI_IN_PLACE, MPI_BOTTOM, 1, now_handle, op, comm);
        now_base = 0;
        MPI_Type_free(&now_handle);
        return rc;
#if MPI_VERSION >= 4
    case LARGE_COUNT:
        return MPI_Allreduce_c(send->data, receive->data, count, now->type.handle, op, comm);
#endif
    case IN_PLACE:
        return MPI_Allreduce(MPI_IN_PLACE, receive->data, count, now->type.handle, op, comm);
    default:
        return MPI_Allreduce(send->data, receive->data, count, now->type.handle, op, comm);
    }
}

/* Whether no algorithm leaves it to the MPI library: of all ranks' elements together hsb takes
 * 1 MiB. */
static bool is_for_all(const struct cf_type *type, int64_t count)
{
    return type->size <= 4096 && count * (int64_t)type->size * cf_size <= 1 << 20;
}

/* collx may have no room for what an op, which may count on that, would get at once from the MPI
 * library. */
static bool may_be_left(const struct cf_type *type, int64_t count)
{
    const int64_t bytes = count * (int64_t)type->size;

#ifdef OPEN_MPI
    if (commutative && bytes >= 8192)
        return false;
#endif
    return count > 1 && bytes * cf_size > 16384;
}

/* Open MPI's ring algorithm frees what it never allocated where data do not begin at the buffer's
 * address, and has no memory for the gaps around an element's data; MPICH lets the op write those
 * into the program's own buffer, where we would take it for damage. */
static bool library_differs(const struct layout *layout, int64_t count)
{
#ifdef OPEN_MPI
    if (layout->a < 0 && count > 500)
        return true;
#endif
    (void)count;
    return layout->whole;
}

static void one(MPI_Comm comm, const struct layout *layout, int64_t count, MPI_Op op, enum how how,
                uint64_t seed)
{
    static const char *const names[] = {"", ", in place", ", _c", ", MPI_BOTTOM"};
    const struct cf_type *type = &layout->type;
    bool in_place = how == IN_PLACE || how == BOTTOM;
    struct cf_buffer send, receive, expected, reference;
    int rc;

    const bool to_collx = cf_routed && !may_be_left(type, count);

    if (!to_collx && library_differs(layout, count))
        return;
    if (cf_left_out_in_part(seed, count * (int64_t)type->size))
        return;
    cf_case("MPI_Allreduce, user's %s op, %jd x %s%s",
            commutative ? "commutative" : "non-commutative", (intmax_t)count, type->name,
            names[how]);
    now = layout;
    now_handle = type->handle;
    misused = false;
    send = cf_buffer_make(CF_SEND, type, count, 0);
    receive = cf_buffer_make(CF_RECEIVE, type, count, 0);
    cf_buffer_put(in_place ? &receive : &send, cf_stream(seed, cf_rank));
    by_collx = to_collx && is_for_all(type, count);
    rc = reduce(&send, &receive, op, how, comm);
    by_collx = false;
    if (misused)
        cf_fail("the op was called with a wrong datatype, count, or misaligned elements");

    expected = cf_buffer_make(CF_EXPECT, type, count, 0);
    if (!in_place) {
        cf_buffer_put(&expected, cf_stream(seed, cf_rank));
        cf_buffer_equal(&send, &expected, "send buffer");
    }
    cf_same(cf_ok(rc) ? cf_hash(0, receive.start, receive.total) : 0);
    if (cf_turn(seed)) {
        cf_buffer_put(&expected, cf_stream(seed, cf_size - 1));
        for (int i = cf_size - 2; i >= 0; i--) {
            reference = cf_buffer_make(CF_REFERENCE, type, count, 0);
            cf_buffer_put(&reference, cf_stream(seed, i));
            combine(reference.data, expected.data, count);
        }
        cf_buffer_equal(&receive, &expected, "receive buffer");
    }

    if (how == PLAIN && !library_differs(layout, count) && cf_sampled()) {
        reference = cf_buffer_make(CF_REFERENCE, type, count, 0);
        cf_library.allreduce(send.data, reference.data, (int)count, type->handle, op, comm);
        cf_buffer_equal(&receive, &reference, "beside the library's own result");
    }
}

/* Two numbers at these places of an element. */
static struct layout pair_at(const char *name, ptrdiff_t a, ptrdiff_t b, ptrdiff_t lb,
                             ptrdiff_t extent)
{
    struct layout layout = {.a = a, .b = b, .pairs = 1};
    MPI_Datatype inner;

    snprintf(layout.type.name, sizeof layout.type.name, "%s", name);
    MPI_Type_create_hindexed_block(2, 1, (MPI_Aint[]){a, b}, MPI_UINT64_T, &inner);
    MPI_Type_create_resized(inner, lb, extent, &layout.type.handle);
    MPI_Type_commit(&layout.type.handle);
    MPI_Type_free(&inner);
    layout.type.derived = true;
    layout.type.extent = extent;
    layout.type.size = 16;
    layout.type.pieces = 2;
    layout.type.piece = malloc(2 * sizeof *layout.type.piece);
    layout.type.piece[0] = (struct cf_piece){a, 8};
    layout.type.piece[1] = (struct cf_piece){b, 8};
    return layout;
}

static struct layout pairs_together(int pairs)
{
    return (struct layout){
        .type = cf_type_contiguous(cf_basic_find(MPI_UINT64_T), 2 * pairs),
        .a = 0,
        .b = 8,
        .pairs = pairs,
    };
}

static void with_op(MPI_Comm comm, bool commute)
{
    static const int counts[] = {0, 1, 2, 3, 4, 17, 100, 700, 4097, 30000};
    struct layout layouts[] = {
        pairs_together(1),
        pairs_together(3),
        pair_at("pair with holes", 0, 16, 0, 32),
        pair_at("pair, lower bound -16", -8, 8, -16, 32),
        pair_at("pair, lower bound 24 above the data", 0, 8, 24, 16),
        pair_at("pair, b before a, no gaps", 8, 0, 0, 16),
    };
    struct layout big = pairs_together(1 << 16), odd = pairs_together(4099);
    struct layout alone = pairs_together(200);
    struct layout whole =
        pair_at("pair in the middle of 1 MiB", 1 << 19, (1 << 19) + 8, 0, 1 << 20);
    uint64_t seed = 60000;
    MPI_Op op;

    commutative = commute;
    MPI_Op_create(compose, commute, &op);
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++) {
        for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++, seed += 2) {
            if ((cf_quick && c % 3 != i % 3) || (counts[c] > 1000 && cf_left_out(seed)))
                continue;
            one(comm, &layouts[i], counts[c], op, PLAIN, seed);
            one(comm, &layouts[i], counts[c], op, IN_PLACE, seed + 1);
        }
        one(comm, &layouts[i], 1, op, BOTTOM, seed++);
    }
    /* Of 3200 bytes: one is combined by all ranks where two are shared. */
    for (int count = 1; count <= 2; count++) {
        one(comm, &alone, count, op, PLAIN, seed++);
        one(comm, &alone, count, op, IN_PLACE, seed++);
    }
    /* Elements of 1 MiB and of 64 KiB and a bit: larger than anybody's pieces. */
    one(comm, &big, 1, op, PLAIN, seed++);
    one(comm, &big, 1, op, IN_PLACE, seed++);
    one(comm, &big, 3, op, PLAIN, seed++);
    one(comm, &odd, 1, op, PLAIN, seed++);
    one(comm, &odd, 7, op, IN_PLACE, seed++);
    whole.whole = true;
    for (int count = 1; count <= 4; count++)
        one(comm, &whole, count, op, PLAIN, seed++);
    MPI_Op_free(&op);
#if MPI_VERSION >= 4
    MPI_Op_create_c(compose_large, commute, &op);
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++, seed++)
        one(comm, &layouts[2], counts[c], op, LARGE_COUNT, seed);
    MPI_Op_free(&op);
#endif
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++)
        cf_type_free(&layouts[i].type);
    cf_type_free(&alone.type);
    cf_type_free(&odd.type);
    cf_type_free(&big.type);
    cf_type_free(&whole.type);
}

/* A user's op on a basic type must not be mistaken for one that we know. */
static void weighted(void *in, void *inout, int *count, MPI_Datatype *type)
{
    if (*type != MPI_INT)
        misused = true;
    for (int i = 0; i < *count; i++)
        ((int *)inout)[i] = (int)(((int64_t)((int *)in)[i] + ((int *)inout)[i] + 5) % 1000003);
}

static void on_basic_type(MPI_Comm comm)
{
    static const int counts[] = {1, 2, 13, 1024, 20000};
    static int in[20000], out[20000];
    MPI_Op op;

    misused = false;
    MPI_Op_create(weighted, 1, &op);
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        int64_t base = (int64_t)cf_size * (cf_size - 1) / 2 * 1000 + 5 * (cf_size - 1);

        cf_case("MPI_Allreduce, user's op on %d x MPI_INT", counts[c]);
        for (int i = 0; i < counts[c]; i++)
            in[i] = 1000 * cf_rank + i;
        if (!cf_ok(MPI_Allreduce(in, out, counts[c], MPI_INT, op, comm)))
            continue;
        for (int i = 0; i < counts[c]; i++) {
            int64_t expected = (base + (int64_t)cf_size * i) % 1000003;

            if (out[i] != expected) {
                cf_fail("element %d: %d, expected %jd", i, out[i], (intmax_t)expected);
                break;
            }
        }
    }
    if (misused)
        cf_fail("the op was called with a datatype that is not MPI_INT");
    MPI_Op_free(&op);
}

static int wanted;

/* Takes for granted that it gets all elements, and writes into both operands. */
static void careless(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)type;
    misused = misused || *count != wanted;
    for (int i = 0; i < *count; i++) {
        ((double *)inout)[i] += ((double *)in)[i];
        ((double *)in)[i] = -1;
    }
}

/* As the MPI libraries let programs do, whatever the standard says: Open MPI, if it commutes, of
 * less than 4 or 8 KiB. */
static void with_careless_op(MPI_Comm comm, bool commute)
{
    enum { MOST = 5000, MOST_COMMUTE = 500 };
    static const int counts[] = {1, 2, 7, 39, 64, 300, MOST_COMMUTE, 1200, MOST};
    static double in[MOST], out[MOST];
    MPI_Op op;

    MPI_Op_create(careless, commute, &op);
    for (int c = 0; c < (int)(sizeof counts / sizeof counts[0]) * 2; c++) {
        const bool in_place = c & 1;

        wanted = counts[c / 2];
        if (commute && wanted > MOST_COMMUTE)
            break;
        misused = false;
        cf_case("MPI_Allreduce, careless user's op on %d x MPI_DOUBLE%s", wanted,
                in_place ? ", in place" : "");
        for (int i = 0; i < wanted; i++)
            in[i] = out[i] = cf_rank + i;
        if (!cf_ok(MPI_Allreduce(in_place ? MPI_IN_PLACE : in, out, wanted, MPI_DOUBLE, op, comm)))
            continue;
        for (int i = 0; i < wanted; i++) {
            if (out[i] != cf_size * (cf_size - 1) / 2 + cf_size * i) {
                cf_fail("element %d: %g", i, out[i]);
                break;
            }
            if (in[i] != cf_rank + i) {
                cf_fail("the send buffer has been written to");
                break;
            }
        }
        if (misused)
            cf_fail("the op was called for other than %d elements", wanted);
    }
    MPI_Op_free(&op);
}

void cf_test_allreduce_user(void)
{
    MPI_Comm comm = cf_world_dup();

    with_op(comm, true);
    with_op(comm, false);
    on_basic_type(comm);
    with_careless_op(comm, true);
    with_careless_op(comm, false);
    MPI_Comm_free(&comm);
}
