/* Every reduction kernel in every version that this CPU runs, against what the standard says. */
extern "C" {
#include "algorithms/reduction/reduce.h"
#include "base/options.h"
}

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <limits>
#include <new>
#include <random>
#include <type_traits>
#include <vector>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace
{

const char *const op_names[] = {"sum", "prod", "min",  "max", "band",
                                "bor", "bxor", "land", "lor", "lxor"};
const collx_op ops[] = {COLLX_OP_SUM, COLLX_OP_PROD, COLLX_OP_MIN,  COLLX_OP_MAX, COLLX_OP_BAND,
                        COLLX_OP_BOR, COLLX_OP_BXOR, COLLX_OP_LAND, COLLX_OP_LOR, COLLX_OP_LXOR};
const size_t max_count = 4099;

/* A 16-bit floating-point number of `digits` binary digits: value and rounding by the book. */
template <int digits, int exponents> struct Half {
    static constexpr int lowest =
        2 - (1 << (exponents - 1)); /* exponent of the smallest normal one */
    static constexpr int quiet_bit = 1 << (digits - 2);
    uint16_t bits;

    double value() const
    {
        int exponent = (bits & 0x7fff) >> (digits - 1), fraction = bits & ((1 << (digits - 1)) - 1);
        double magnitude;

        if (exponent == (1 << exponents) - 1)
            magnitude = fraction ? NAN : INFINITY;
        else if (exponent == 0)
            magnitude = std::ldexp(fraction, lowest - digits + 1);
        else
            magnitude = std::ldexp(fraction + (1 << (digits - 1)), lowest + exponent - digits);
        return std::copysign(magnitude, bits & 0x8000 ? -1.0 : 1.0);
    }

    static Half nearest(double value)
    {
        const int infinity = ((1 << exponents) - 1) << (digits - 1);
        int sign = std::signbit(value) ? 0x8000 : 0;

        if (std::isnan(value))
            return {static_cast<uint16_t>(sign | infinity | quiet_bit)};
        if (value == 0 || std::isinf(value))
            return {static_cast<uint16_t>(sign | (value == 0 ? 0 : infinity))};
        int exponent = std::max(std::ilogb(value), lowest);
        int steps =
            static_cast<int>(std::nearbyint(std::ldexp(std::fabs(value), digits - 1 - exponent)));
        /* Rounded up to the next exponent, or from the denormals, it carries by itself. */
        int magnitude = ((exponent - lowest) << (digits - 1)) + steps;
        return {static_cast<uint16_t>(sign | std::min(magnitude, infinity))};
    }
};
using F16 = Half<11, 5>;
using BF16 = Half<8, 8>;

bool is_nan(float x)
{
    return std::isnan(x);
}

bool is_nan(double x)
{
    return std::isnan(x);
}

template <class T> bool is_nan(T x)
{
    return std::isnan(x.value());
}

/* A NaN as it comes out of an operation. */
template <class T> T quiet(T nan)
{
    if constexpr (std::is_floating_point_v<T>)
        return nan + nan;
    else
        return {static_cast<uint16_t>(nan.bits | T::quiet_bit)};
}

template <class T> T expected(collx_op op, T a, T b)
{
    if constexpr (std::is_integral_v<T>) {
        __int128 x = a, y = b;
        switch (op) {
        case COLLX_OP_SUM:
            return static_cast<T>(x + y);
        case COLLX_OP_PROD:
            return static_cast<T>(static_cast<unsigned __int128>(x) *
                                  static_cast<unsigned __int128>(y));
        case COLLX_OP_MIN:
            return x < y ? a : b;
        case COLLX_OP_MAX:
            return x < y ? b : a;
        case COLLX_OP_BAND:
            return static_cast<T>(x & y);
        case COLLX_OP_BOR:
            return static_cast<T>(x | y);
        case COLLX_OP_BXOR:
            return static_cast<T>(x ^ y);
        case COLLX_OP_LAND:
            return x && y;
        case COLLX_OP_LOR:
            return x || y;
        default:
            return !x != !y;
        }
    } else if ((op == COLLX_OP_SUM || op == COLLX_OP_PROD) && (is_nan(a) || is_nan(b))) {
        return quiet(is_nan(a) ? a : b);
    } else if constexpr (std::is_floating_point_v<T>) {
        switch (op) {
        case COLLX_OP_SUM:
            return a + b;
        case COLLX_OP_PROD:
            return a * b;
        case COLLX_OP_MIN:
            return b < a ? b : a;
        default:
            return b > a ? b : a;
        }
    } else {
        switch (op) {
        case COLLX_OP_SUM:
            return T::nearest(a.value() + b.value());
        case COLLX_OP_PROD:
            return T::nearest(a.value() * b.value());
        case COLLX_OP_MIN:
            return b.value() < a.value() ? b : a;
        default:
            return b.value() > a.value() ? b : a;
        }
    }
}

template <class T> T with_bits(uint64_t bits)
{
    T x;

    std::memcpy(&x, &bits, sizeof x);
    return x;
}

/* Anything, and much of what is special: zeros, least and greatest numbers, infinities, NaNs. */
template <class T> std::vector<T> values(unsigned seed)
{
    const int width = 8 * sizeof(T);
    std::mt19937_64 random(seed);
    std::vector<T> all(max_count);
    int digits = width; /* of a floating-point type: all below the exponent */
    if constexpr (std::is_floating_point_v<T>)
        digits = std::numeric_limits<T>::digits - 1;
    else if constexpr (!std::is_integral_v<T>)
        digits = std::is_same_v<T, F16> ? 10 : 7;

    for (T &x : all) {
        uint64_t bits = random(), sign = bits >> 63 << (width - 1);
        uint64_t fraction = digits < width ? (uint64_t(1) << digits) - 1 : 0;
        uint64_t infinity = ((uint64_t(1) << (width - 1)) - 1) & ~fraction;
        switch (random() % 8) {
        case 0:
            bits = sign; /* zero, -0.0, INT_MIN */
            break;
        case 1:
            bits = sign | (digits < width ? infinity : infinity - 1);
            break;
        case 2:
            bits = sign | infinity | (bits & fraction);
            break;
        case 3:
            bits = sign | (bits & fraction); /* a denormal */
            break;
        case 4:
            bits = (bits & 1) - (bits >> 1 & 1); /* 0, 1, -1 */
            break;
        default:
            break;
        }
        x = with_bits<T>(bits);
    }
    return all;
}

enum class Result { apart, left, right };

/* Bytes at an offset from a line's beginning; nothing follows but `behind` ones to be left alone,
 * so that a sanitizer sees what is read too far. */
struct Bytes {
    size_t offset, bytes, behind;
    unsigned char *room, *at;

    Bytes(size_t offset, const void *from, size_t bytes, size_t behind)
        : offset(offset), bytes(bytes), behind(behind)
    {
        void *memory = nullptr;
        if (posix_memalign(&memory, 64, offset + bytes + behind))
            throw std::bad_alloc();
        room = static_cast<unsigned char *>(memory);
        at = room + offset;
        std::memset(room, 0xee, offset + bytes + behind);
        std::memcpy(at, from, bytes);
    }
    ~Bytes()
    {
        free(room);
    }
    Bytes(const Bytes &) = delete;
    Bytes &operator=(const Bytes &) = delete;

    bool untouched_around() const
    {
        for (size_t i = 0; i < offset + bytes + behind; i++)
            if ((i < offset || i >= offset + bytes) && room[i] != 0xee)
                return false;
        return true;
    }
};

template <class T>
std::string run(collx_reduce_fn *kernel, const std::vector<T> &left, const std::vector<T> &right,
                const std::vector<T> &result, size_t count, const size_t (&offset)[3], Result where)
{
    size_t bytes = count * sizeof(T);
    Bytes a(offset[0], left.data(), bytes, where == Result::left ? 64 : 0);
    Bytes b(offset[1], right.data(), bytes, where == Result::right ? 64 : 0);
    const std::vector<unsigned char> unwritten(bytes, 0xee);
    Bytes c(offset[2], unwritten.data(), bytes, 64);
    Bytes &to = where == Result::left ? a : where == Result::right ? b : c;

    kernel(a.at, b.at, to.at, count);
    if (!to.untouched_around())
        return "wrote around the result";
    if (where != Result::left && bytes && std::memcmp(a.at, left.data(), bytes))
        return "changed the left operand";
    if (where != Result::right && bytes && std::memcmp(b.at, right.data(), bytes))
        return "changed the right operand";
    for (size_t i = 0; i < count; i++) {
        T got;
        std::memcpy(&got, to.at + i * sizeof got, sizeof got);
        if (std::memcmp(&got, &result[i], sizeof got))
            return "element " + std::to_string(i) + " is wrong";
    }
    return "";
}

template <class T> void check(collx_kernels version, collx_elem elem)
{
    static const size_t offsets[][3] = {{0, 0, 0}, {8, 8, 8}, {1, 2, 3}, {63, 0, 31}, {0, 17, 62}};
    const std::vector<T> left = values<T>(1), right = values<T>(2);
    std::vector<size_t> counts = {127, 128, 129, 255, 256, 257, 511, 1000, max_count};
    size_t seen = 0;

    for (size_t count = 0; count <= 70; count++)
        counts.push_back(count);
    for (size_t o = 0; o < std::size(ops); o++) {
        collx_reduce_fn *kernel = collx_reduce_kernel_of(version, ops[o], elem);
        EXPECT_EQ(kernel != nullptr, std::is_integral_v<T> || o < 4) << op_names[o];
        if (!kernel)
            continue;
        std::vector<T> result(max_count);
        for (size_t i = 0; i < max_count; i++)
            result[i] = expected(ops[o], left[i], right[i]);
        for (size_t count : counts)
            for (Result where : {Result::apart, Result::left, Result::right}) {
                const size_t sampled[3] = {seen % 64, seen / 3 % 64, seen / 7 % 64};
                const size_t(&offset)[3] =
                    seen % 2 ? sampled : offsets[seen / 2 % std::size(offsets)];
                seen++;
                ASSERT_EQ("", run(kernel, left, right, result, count, offset, where))
                    << op_names[o] << ", element type " << elem << ", count " << count
                    << ", result " << static_cast<int>(where) << ", offsets " << offset[0] << " "
                    << offset[1] << " " << offset[2];
            }
    }
}

class Reduce : public testing::TestWithParam<collx_kernels>
{
  protected:
    void SetUp() override
    {
        if (!collx_reduce_kernel_of(GetParam(), COLLX_OP_SUM, COLLX_ELEM_F64))
            GTEST_SKIP() << "this CPU lacks the instructions";
    }
};

TEST_P(Reduce, Integers)
{
    check<int8_t>(GetParam(), COLLX_ELEM_I8);
    check<int16_t>(GetParam(), COLLX_ELEM_I16);
    check<int32_t>(GetParam(), COLLX_ELEM_I32);
    check<int64_t>(GetParam(), COLLX_ELEM_I64);
    check<uint8_t>(GetParam(), COLLX_ELEM_U8);
    check<uint16_t>(GetParam(), COLLX_ELEM_U16);
    check<uint32_t>(GetParam(), COLLX_ELEM_U32);
    check<uint64_t>(GetParam(), COLLX_ELEM_U64);
}

TEST_P(Reduce, FloatingPoint)
{
    check<F16>(GetParam(), COLLX_ELEM_F16);
    check<BF16>(GetParam(), COLLX_ELEM_BF16);
    check<float>(GetParam(), COLLX_ELEM_F32);
    check<double>(GetParam(), COLLX_ELEM_F64);
}

/* Part by part; no other operation has a kernel. */
template <class T> void check_complex(collx_kernels version, collx_elem elem, collx_elem part)
{
    std::mt19937 random(5);
    for (size_t count : {1, 2, 7, 8, 9, 64, 1000}) {
        std::vector<T> left(2 * count), right(2 * count), got(2 * count), want(2 * count);
        for (size_t i = 0; i < 2 * count; i++) {
            left[i] = static_cast<T>(random()) / 3;
            right[i] = static_cast<T>(random()) / 7;
            want[i] = left[i] + right[i];
        }
        collx_reduce_kernel_of(version, COLLX_OP_SUM, elem)(left.data(), right.data(), got.data(),
                                                            count);
        EXPECT_EQ(got, want) << count;
    }
    for (collx_op op : {COLLX_OP_PROD, COLLX_OP_MIN, COLLX_OP_MAX, COLLX_OP_MAXLOC})
        EXPECT_EQ(nullptr, collx_reduce_kernel_of(version, op, elem)) << op;
    EXPECT_NE(nullptr, collx_reduce_kernel_of(version, COLLX_OP_PROD, part));
}

TEST_P(Reduce, Complex)
{
    check_complex<float>(GetParam(), COLLX_ELEM_C64, COLLX_ELEM_F32);
    check_complex<double>(GetParam(), COLLX_ELEM_C128, COLLX_ELEM_F64);
}

/* By the book: of equal values the lower place. */
template <class Value, class Place> void check_pairs(collx_kernels version, collx_elem elem)
{
    struct [[gnu::packed]] Pair {
        Value value;
        Place place;
    };
    std::mt19937 random(7);
    for (size_t count : {1, 2, 9, 1000}) {
        std::vector<Pair> left(count), right(count), got(count);
        for (bool most : {false, true}) {
            for (size_t i = 0; i < count; i++) {
                left[i] = {static_cast<Value>(random() % 3), static_cast<Place>(random() % 5)};
                right[i] = {static_cast<Value>(random() % 3), static_cast<Place>(random() % 5)};
            }
            collx_reduce_kernel_of(version, most ? COLLX_OP_MAXLOC : COLLX_OP_MINLOC,
                                   elem)(left.data(), right.data(), got.data(), count);
            for (size_t i = 0; i < count; i++) {
                const Value a = left[i].value, b = right[i].value;
                const Place there = a == b ? std::min<Place>(left[i].place, right[i].place)
                                    : (a > b) == most ? Place(left[i].place)
                                                      : Place(right[i].place);
                EXPECT_EQ(Value(got[i].value), most ? std::max(a, b) : std::min(a, b));
                EXPECT_EQ(Place(got[i].place), there);
            }
            /* In place, either side. */
            std::vector<Pair> same = left;
            collx_reduce_kernel_of(version, most ? COLLX_OP_MAXLOC : COLLX_OP_MINLOC,
                                   elem)(same.data(), right.data(), same.data(), count);
            EXPECT_EQ(0, memcmp(same.data(), got.data(), count * sizeof(Pair)));
            same = right;
            collx_reduce_kernel_of(version, most ? COLLX_OP_MAXLOC : COLLX_OP_MINLOC,
                                   elem)(left.data(), same.data(), same.data(), count);
            EXPECT_EQ(0, memcmp(same.data(), got.data(), count * sizeof(Pair)));
        }
    }
    EXPECT_EQ(nullptr, collx_reduce_kernel_of(version, COLLX_OP_SUM, elem));
}

TEST_P(Reduce, Pairs)
{
    check_pairs<int16_t, int32_t>(GetParam(), COLLX_ELEM_I16_INT);
    check_pairs<int32_t, int32_t>(GetParam(), COLLX_ELEM_I32_INT);
    check_pairs<int64_t, int32_t>(GetParam(), COLLX_ELEM_I64_INT);
    check_pairs<float, int32_t>(GetParam(), COLLX_ELEM_F32_INT);
    check_pairs<double, int32_t>(GetParam(), COLLX_ELEM_F64_INT);
    check_pairs<float, float>(GetParam(), COLLX_ELEM_2F32);
    check_pairs<double, double>(GetParam(), COLLX_ELEM_2F64);
}

/* Every half next to zero, to one and to itself, and many with any other. */
template <class T> void check_halves(collx_kernels version, collx_elem elem)
{
    const size_t count = 65536;
    std::mt19937 random(3);
    std::vector<T> left(count), right(count), got(count);

    for (int round = 0; round < 12; round++)
        for (collx_op op : {COLLX_OP_SUM, COLLX_OP_PROD, COLLX_OP_MIN, COLLX_OP_MAX}) {
            const T one = T::nearest(1);
            for (size_t i = 0; i < count; i++) {
                left[i] = {static_cast<uint16_t>(i)};
                uint16_t any = static_cast<uint16_t>(random());
                right[i] = round == 0 ? T{0} : round == 1 ? one : round == 2 ? left[i] : T{any};
            }
            collx_reduce_kernel_of(version, op, elem)(left.data(), right.data(), got.data(), count);
            for (size_t i = 0; i < count; i++)
                ASSERT_EQ(got[i].bits, expected(op, left[i], right[i]).bits)
                    << op << " of " << std::hex << left[i].bits << " and " << right[i].bits;
        }
}

TEST_P(Reduce, HalvesAreRoundedOnce)
{
    check_halves<F16>(GetParam(), COLLX_ELEM_F16);
    check_halves<BF16>(GetParam(), COLLX_ELEM_BF16);
}

#if defined(__x86_64__)
/* Programs built for speed tell the CPU to take denormal floats for zero; f16 has others. */
TEST_P(Reduce, HalvesHaveDenormalsWhereFloatsHaveNone)
{
    const unsigned flush_to_zero = 0x8000, denormals_are_zero = 0x0040, before = _mm_getcsr();
    uint16_t left[19], right[19], got[19];

    for (uint16_t i = 0; i < 19; i++) {
        left[i] = static_cast<uint16_t>(1 + i);
        right[i] = 0x8001;
    }
    _mm_setcsr(before | flush_to_zero | denormals_are_zero);
    collx_reduce_kernel_of(GetParam(), COLLX_OP_SUM, COLLX_ELEM_F16)(left, right, got, 19);
    _mm_setcsr(before);
    for (uint16_t i = 0; i < 19; i++)
        EXPECT_EQ(i, got[i]);
}
#endif

INSTANTIATE_TEST_SUITE_P(, Reduce,
                         testing::Values(COLLX_KERNELS_AVX512, COLLX_KERNELS_AVX2, COLLX_KERNELS_C),
                         [](const testing::TestParamInfo<collx_kernels> &info) {
                             char text[COLLX_VALUE_MAX];
                             return std::string(
                                 collx_value_format(COLLX_KERNELS, info.param, text, sizeof text));
                         });

// Of Intel's model 85, by what the kernel says of it.
bool lowers_its_clock()
{
    std::ifstream cpuinfo("/proc/cpuinfo");
    const std::string text((std::istreambuf_iterator<char>(cpuinfo)), {});
    return text.find("vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 85\n") !=
           std::string::npos;
}

TEST(ReduceVersion, IsTheWidestThatTheOptionAndTheCpuAllow)
{
    for (const char *word : {"auto", "avx512", "avx2", "c"}) {
        std::string variable = std::string("COLLX_KERNELS=") + word;
        char *environment[] = {variable.data(), nullptr};
        collx_options_load(environment, nullptr);
        int version = static_cast<int>(collx_option_number(COLLX_OPTION_KERNELS));
        if (version == COLLX_KERNELS_AUTO)
            version = lowers_its_clock() ? COLLX_KERNELS_AVX2 : COLLX_KERNELS_AVX512;
        while (!collx_reduce_kernel_of(static_cast<collx_kernels>(version), COLLX_OP_SUM,
                                       COLLX_ELEM_F64))
            version++;
        EXPECT_EQ(version, collx_reduce_version()) << word;
        EXPECT_EQ(collx_reduce_kernel(COLLX_OP_MAX, COLLX_ELEM_I16),
                  collx_reduce_kernel_of(static_cast<collx_kernels>(version), COLLX_OP_MAX,
                                         COLLX_ELEM_I16));
    }
    collx_options_load(nullptr, nullptr);
}

TEST(ReduceVersion, HasNoKernelWhereMpiHasNoOperation)
{
    EXPECT_EQ(nullptr, collx_reduce_kernel(COLLX_OP_BAND, COLLX_ELEM_F64));
    EXPECT_EQ(nullptr, collx_reduce_kernel(COLLX_OP_MINLOC, COLLX_ELEM_I32));
    EXPECT_EQ(nullptr, collx_reduce_kernel(COLLX_OP_SUM, COLLX_ELEM_NONE));
    EXPECT_EQ(nullptr, collx_reduce_kernel(COLLX_OP_USER, COLLX_ELEM_I64));
}

} // namespace
