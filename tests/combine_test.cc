/* Combining by the MPI library's reduction, wherever operands and results are. */
extern "C" {
#include "algorithms/reduction/combine.h"
}

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>
#include <vector>

namespace
{

/* x -> a x + b: to do one after the other does not commute. */
struct Affine {
    int64_t a, b;
};

Affine after(Affine left, Affine right)
{
    return {left.a * right.a, left.a * right.b + left.b};
}

int reductions;

/* A library's code may load and store as it likes what lies as the program's would. */
int reduce(void *, const collx_call *call, const void *in, void *inout, int64_t count)
{
    const auto *left = static_cast<const Affine *>(in);
    auto *right = static_cast<Affine *>(inout);

    if ((reinterpret_cast<uintptr_t>(in) | reinterpret_cast<uintptr_t>(inout)) % sizeof(Affine))
        return 77;
    reductions++;
    for (size_t i = 0; i < static_cast<size_t>(count) * call->elem_bytes / sizeof(Affine); i++) {
        right[i] = after(left[i], right[i]);
        if (call->op_kind == COLLX_OP_USER)
            const_cast<Affine *>(left)[i] = {-1, -1};
    }
    return 0;
}

/* Not contiguous: every element is the other way round. */
void turn(const collx_call *call, const void *from, void *to, int64_t count)
{
    const auto *in = static_cast<const unsigned char *>(from);
    auto *out = static_cast<unsigned char *>(to);

    for (int64_t i = 0; i < count; i++, in += call->elem_bytes, out += call->elem_bytes)
        call->contiguous ? std::copy(in, in + call->elem_bytes, out)
                         : std::reverse_copy(in, in + call->elem_bytes, out);
}

int pack(void *, const collx_call *call, const void *buf, int64_t first, int64_t count,
         void *packed)
{
    turn(call, static_cast<const char *>(buf) + first * static_cast<int64_t>(call->elem_bytes),
         packed, count);
    return 0;
}

int unpack(void *, const collx_call *call, const void *packed, void *buf, int64_t first,
           int64_t count)
{
    turn(call, packed, static_cast<char *>(buf) + first * static_cast<int64_t>(call->elem_bytes),
         count);
    return 0;
}

void *elements(void *, const collx_call *call, int64_t count, void **base)
{
    return *base = malloc(static_cast<size_t>(count) * call->elem_bytes);
}

void *no_elements(void *, const collx_call *, int64_t, void **base)
{
    return *base = nullptr;
}

Affine operand(int rank, size_t i)
{
    return {static_cast<int64_t>(i % 5) + rank + 2, static_cast<int64_t>(i) - 3 * rank};
}

struct Combining {
    int ranks;
    size_t elem_bytes, count;
    bool contiguous;
    int result; /* whose operand it is to replace; -1: nobody's */
    int askew;  /* bytes that operands and the result are off their alignment, by bits */
    collx_op op = COLLX_OP_NONE;
    bool whole = false;
};

collx_lender_ops ops_of_tests()
{
    collx_lender_ops ops = {};
    ops.reduce = reduce;
    ops.pack = pack;
    ops.unpack = unpack;
    ops.elements = elements;
    ops.no_memory = 34;
    return ops;
}

void check(const Combining &c)
{
    const collx_lender_ops ops = ops_of_tests();
    collx_team team = {};
    team.size = c.ranks;
    team.ops = &ops;
    collx_call call = {};
    call.elem_bytes = c.elem_bytes;
    call.contiguous = c.contiguous;
    call.op_kind = c.op;
    call.whole = c.whole;
    const size_t bytes = c.count * c.elem_bytes, each = bytes / sizeof(Affine);
    std::vector<std::vector<Affine>> room(static_cast<size_t>(c.ranks) + 1,
                                          std::vector<Affine>(each + 1));
    std::vector<unsigned char *> from;
    auto place = [&](int i) {
        return reinterpret_cast<unsigned char *>(room[static_cast<size_t>(i)].data()) +
               (c.askew >> i & 1 ? 8 : 0);
    };

    for (int rank = 0; rank < c.ranks; rank++) {
        std::vector<Affine> own(each);
        for (size_t i = 0; i < each; i++)
            own[i] = operand(rank, i);
        from.push_back(place(rank));
        turn(&call, own.data(), from.back(), static_cast<int64_t>(c.count));
    }
    unsigned char *result = place(c.result < 0 ? c.ranks : c.result);
    const std::vector<std::vector<Affine>> before = room;
    ASSERT_EQ(
        collx_combine(&team, &call, from.data(), nullptr, static_cast<int64_t>(c.count), result),
        0);
    std::vector<Affine> got(each);
    turn(&call, result, got.data(), static_cast<int64_t>(c.count));
    for (size_t i = 0; i < before.size(); i++) {
        if (static_cast<int>(i) == (c.result < 0 ? c.ranks : c.result))
            continue;
        ASSERT_EQ(memcmp(room[i].data(), before[i].data(), (each + 1) * sizeof(Affine)), 0)
            << "what rank " << i << " contributes has been written to";
    }
    for (size_t i = 0; i < each; i++) {
        Affine want = operand(0, i);
        for (int rank = 1; rank < c.ranks; rank++)
            want = after(want, operand(rank, i));
        ASSERT_TRUE(got[i].a == want.a && got[i].b == want.b)
            << c.ranks << " ranks, " << c.count << " of " << c.elem_bytes << " bytes, contiguous "
            << c.contiguous << ", result " << c.result << ", askew " << c.askew << ", element "
            << i;
    }
}

TEST(Combine, IsInOrderWhereverOperandsAre)
{
    for (int ranks = 2; ranks <= 5; ranks++)
        for (size_t elem_bytes : {16, 48, 4096})
            for (size_t count : {1, 3, 511, 512, 513, 1200})
                for (int result = -1; result < ranks; result++)
                    for (int askew = 0; askew<1 << (ranks + 1); askew += ranks> 3 ? 5 : 1)
                        if (count * elem_bytes <= 1 << 16)
                            check({ranks, elem_bytes, count, true, result, askew});
}

TEST(Combine, UnpacksWhatIsLaidOutOtherwise)
{
    for (int ranks = 2; ranks <= 4; ranks++)
        for (size_t elem_bytes : {16, 48, 16384})
            for (size_t count : {1, 3, 513})
                for (bool contiguous : {false, true})
                    for (int result : {-1, 0})
                        check({ranks, elem_bytes, count, contiguous, result, 0});
}

TEST(Combine, TakesFewCalls)
{
    reductions = 0;
    check({2, 16, 5000, true, 1, 0});
    EXPECT_EQ(reductions, 10) << "of 8 KiB each";
    reductions = 0;
    check({3, 16, 100, true, -1, 0});
    EXPECT_EQ(reductions, 2);
}

/* One of the program's own may write into both operands, and count on getting all elements. */
TEST(Combine, GivesCopiesToAnOperationThatItDoesNotKnow)
{
    for (int ranks = 2; ranks <= 4; ranks++)
        for (size_t count : {1, 20, 5000})
            for (bool contiguous : {false, true})
                for (int result = -1; result < (contiguous ? ranks : 1); result++) {
                    reductions = 0;
                    check({ranks, 16, count, contiguous, result, 0, COLLX_OP_USER, true});
                    EXPECT_EQ(reductions, ranks - 1);
                    check({ranks, 16, count, contiguous, result, 0, COLLX_OP_USER});
                }
}

TEST(Combine, SaysThatThereIsNoMemory)
{
    collx_lender_ops ops = ops_of_tests();
    ops.elements = no_elements;
    collx_team team = {};
    team.size = 2;
    team.ops = &ops;
    collx_call call = {};
    call.elem_bytes = sizeof(Affine);
    Affine operands[2] = {{1, 2}, {3, 4}};
    unsigned char *from[2] = {reinterpret_cast<unsigned char *>(&operands[0]),
                              reinterpret_cast<unsigned char *>(&operands[1])};
    EXPECT_EQ(collx_combine(&team, &call, from, nullptr, 1, from[0]), 34);
}

} // namespace
