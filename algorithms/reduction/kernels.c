/* All reduction kernels, for the instruction set that the compiler was told; KERNELS is the name of
 * the table.  The compiler makes the vector instructions, and in every version the same operations
 * on each element, so results do not depend on the CPU.
 */
#include "algorithms/reduction/kernels.h"
#include "algorithms/reduction/half.h"

/* Minima would not be those of the MPI library.  And a library that is linked so by many compilers,
 * GCC up to 12 among them, has the CPU take tiny numbers for zero in every program that it comes
 * into. */
#ifdef __FAST_MATH__
#error "programs would calculate differently with collx: build it without -ffast-math and -Ofast \
(with an Intel compiler: -fp-model=precise)"
#endif

#if defined(__AVX512F__)
#define VECTOR 64
#elif defined(__AVX2__)
#define VECTOR 32
#else
#define VECTOR 16
#endif

/* The result may be an operand, so `restrict` would be a lie; that no element depends on another
 * one is what these say.  They hold for loops: unrolled first, it would be lost together with the
 * loop.
 */
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wpass-failed"
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety) unroll(disable)")
#else
#define INDEPENDENT _Pragma("GCC ivdep") _Pragma("GCC unroll 1")
#endif

/* The next `n` elements, a constant: at most one vector. */
#define PIECE(n, combine)                                                                          \
    do {                                                                                           \
        INDEPENDENT                                                                                \
        for (size_t i = 0; i < (n); i++)                                                           \
            c[i] = combine(a[i], b[i]);                                                            \
        a += (n), b += (n), c += (n);                                                              \
    } while (0)

/* What is left of a vector. */
#define REST(n, combine)                                                                           \
    do {                                                                                           \
        if ((n) * sizeof *c < VECTOR && count & (n))                                               \
            PIECE(n, combine);                                                                     \
    } while (0)

/* Eight vectors with one branch: copy_ways.c says why. */
#define TWICE(...)                                                                                 \
    do {                                                                                           \
        __VA_ARGS__;                                                                               \
        __VA_ARGS__;                                                                               \
    } while (0)

/* Buffers come as the caller aligned them, in pieces that need not be: a type of alignment 1 makes
 * the compiler emit loads that do not care.  Most reductions in programs are of one element.
 * `whole`: how to combine the next whole vector. */
#define KERNEL_BY(name, type, expression, whole)                                                   \
    static inline type name##_of(type a, type b)                                                   \
    {                                                                                              \
        return (type)(expression);                                                                 \
    }                                                                                              \
    static void name(const void *left, const void *right, void *result, size_t count)              \
    {                                                                                              \
        typedef type __attribute__((aligned(1), may_alias)) element;                               \
        const element *a = left, *b = right;                                                       \
        element *c = result;                                                                       \
        const size_t vector = VECTOR / sizeof(type);                                               \
        if (count == 1) {                                                                          \
            *c = name##_of(*a, *b);                                                                \
            return;                                                                                \
        }                                                                                          \
        size_t vectors = count / vector;                                                           \
        for (; vectors >= 8; vectors -= 8) {                                                       \
            TWICE(TWICE(TWICE(whole)));                                                            \
        }                                                                                          \
        if (vectors & 4) {                                                                         \
            TWICE(TWICE(whole));                                                                   \
        }                                                                                          \
        if (vectors & 2) {                                                                         \
            TWICE(whole);                                                                          \
        }                                                                                          \
        if (vectors & 1) {                                                                         \
            whole;                                                                                 \
        }                                                                                          \
        REST(32, name##_of);                                                                       \
        REST(16, name##_of);                                                                       \
        REST(8, name##_of);                                                                        \
        REST(4, name##_of);                                                                        \
        REST(2, name##_of);                                                                        \
        REST(1, name##_of);                                                                        \
    }
#define KERNEL(name, type, expression) KERNEL_BY(name, type, expression, PIECE(vector, name##_of))

/* Signed sums and products wrap around, which for them is the unsigned operation; there is one
 * kernel for both.  Open MPI 4.1's saturate, of 8 and 16 bits and where they are vectors. */
#define INTEGER(bits)                                                                              \
    KERNEL(sum_u##bits, uint##bits##_t, a + b)                                                     \
    KERNEL(prod_u##bits, uint##bits##_t, 1u * a * b)                                               \
    KERNEL(min_u##bits, uint##bits##_t, b < a ? b : a)                                             \
    KERNEL(max_u##bits, uint##bits##_t, b > a ? b : a)                                             \
    KERNEL(min_i##bits, int##bits##_t, b < a ? b : a)                                              \
    KERNEL(max_i##bits, int##bits##_t, b > a ? b : a)                                              \
    KERNEL(band_u##bits, uint##bits##_t, a &b)                                                     \
    KERNEL(bor_u##bits, uint##bits##_t, a | b)                                                     \
    KERNEL(bxor_u##bits, uint##bits##_t, a ^ b)                                                    \
    KERNEL(land_u##bits, uint##bits##_t, (a != 0) & (b != 0))                                      \
    KERNEL(lor_u##bits, uint##bits##_t, (a | b) != 0)                                              \
    KERNEL(lxor_u##bits, uint##bits##_t, (a != 0) ^ (b != 0))

/* Of two NaNs the CPU takes the first, but which one that is the compiler decides, for each
 * instruction anew.  What all ranks get, and a run repeats, must not depend on that: the left NaN
 * meets itself.  In a minimum or maximum too the left one stays where neither is less. */
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
/* In C that is three instructions for each vector, of which one does: an Allreduce of 4 KiB takes
 * 0.39 us so instead of 0.42.  The first operand stands last here.  The right one may be in memory;
 * given the choice, clang takes it there by way of the stack, and 32 KiB take 4.3 us instead
 * of 3.5. */
#if defined(__clang__)
#define RIGHT_FROM "v"
#else
#define RIGHT_FROM "vm"
#endif
#if defined(__AVX2__)
#define LEFT_FIRST(instruction, left, right)                                                       \
    __asm__("v" instruction " %1, %0, %0" : "+v"(left) : RIGHT_FROM(right))
#else
#define LEFT_FIRST(instruction, left, right)                                                       \
    __asm__(instruction " %1, %0" : "+x"(left) : "x"(right))
#endif
#define FLOATING_KERNEL(kernel, type, expression, instruction)                                     \
    static inline void kernel##_whole(const void *left, const void *right, void *result)           \
    {                                                                                              \
        typedef type __attribute__((vector_size(VECTOR), aligned(1), may_alias)) whole;            \
        whole both = *(const whole *)left;                                                         \
        LEFT_FIRST(instruction, both, *(const whole *)right);                                      \
        *(whole *)result = both;                                                                   \
    }                                                                                              \
    KERNEL_BY(kernel, type, expression,                                                            \
              (kernel##_whole(a, b, c), a += vector, b += vector, c += vector))
#else
#define FLOATING_KERNEL(kernel, type, expression, instruction) KERNEL(kernel, type, expression)
#endif
#define FLOATING(name, type, suffix)                                                               \
    FLOATING_KERNEL(sum_##name, type, a + (a != a ? a : b), "add" suffix)                          \
    FLOATING_KERNEL(prod_##name, type, a *(a != a ? a : b), "mul" suffix)                          \
    KERNEL(min_##name, type, b < a ? b : a)                                                        \
    KERNEL(max_##name, type, b > a ? b : a)

/* Sums and products of two halves are right to the last bit if they are rounded to float first:
 * that has more than twice their digits and two. */
#define HALF(name)                                                                                 \
    KERNEL(sum_##name, uint16_t,                                                                   \
           name##_from_float(name##_to_float(a) + name##_to_float(name##_or_nan(a, b))))           \
    KERNEL(prod_##name, uint16_t,                                                                  \
           name##_from_float(name##_to_float(a) * name##_to_float(name##_or_nan(a, b))))           \
    KERNEL(min_##name, uint16_t, name##_to_float(b) < name##_to_float(a) ? b : a)                  \
    KERNEL(max_##name, uint16_t, name##_to_float(b) > name##_to_float(a) ? b : a)

/* A product takes more than the kernel of its parts: the MPI library's own knows its rules for
 * infinities. */
#define COMPLEX(bits, part)                                                                        \
    static void sum_c##bits(const void *left, const void *right, void *result, size_t count)       \
    {                                                                                              \
        sum_##part(left, right, result, 2 * count);                                                \
    }

/* Of equal values the lower place; the right operand where neither is more, as the MPI libraries
 * have it. */
#define LOCATION(kernel, pair, more)                                                               \
    static void kernel(const void *left, const void *right, void *result, size_t count)            \
    {                                                                                              \
        const struct pair *a = left, *b = right;                                                   \
        struct pair *c = result;                                                                   \
        for (size_t i = 0; i < count; i++) {                                                       \
            struct pair best = a[i].value more b[i].value ? a[i] : b[i];                           \
            if (a[i].value == b[i].value && a[i].place < b[i].place)                               \
                best.place = a[i].place;                                                           \
            c[i] = best;                                                                           \
        }                                                                                          \
    }
#define PAIR(name, value_type, place_type)                                                         \
    struct name {                                                                                  \
        value_type value;                                                                          \
        place_type place;                                                                          \
    } __attribute__((packed, may_alias));                                                          \
    LOCATION(minloc_##name, name, <)                                                               \
    LOCATION(maxloc_##name, name, >)

INTEGER(8)
INTEGER(16)
INTEGER(32)
INTEGER(64)
FLOATING(f32, float, "ps")
FLOATING(f64, double, "pd")
HALF(f16)
HALF(bf16)
COMPLEX(64, f32)
COMPLEX(128, f64)
PAIR(i16_int, int16_t, int32_t)
PAIR(i32_int, int32_t, int32_t)
PAIR(i64_int, int64_t, int32_t)
PAIR(f32_int, float, int32_t)
PAIR(f64_int, double, int32_t)
PAIR(two_f32, float, float)
PAIR(two_f64, double, double)

#define INTEGER_ROW(ELEM, bits, sign)                                                              \
    [COLLX_ELEM_##ELEM] = {                                                                        \
        [COLLX_OP_SUM] = sum_u##bits,      [COLLX_OP_PROD] = prod_u##bits,                         \
        [COLLX_OP_MIN] = min_##sign##bits, [COLLX_OP_MAX] = max_##sign##bits,                      \
        [COLLX_OP_BAND] = band_u##bits,    [COLLX_OP_BOR] = bor_u##bits,                           \
        [COLLX_OP_BXOR] = bxor_u##bits,    [COLLX_OP_LAND] = land_u##bits,                         \
        [COLLX_OP_LOR] = lor_u##bits,      [COLLX_OP_LXOR] = lxor_u##bits,                         \
    }

#define FLOATING_ROW(ELEM, name)                                                                   \
    [COLLX_ELEM_##ELEM] = {                                                                        \
        [COLLX_OP_SUM] = sum_##name,                                                               \
        [COLLX_OP_PROD] = prod_##name,                                                             \
        [COLLX_OP_MIN] = min_##name,                                                               \
        [COLLX_OP_MAX] = max_##name,                                                               \
    }

#define PAIR_ROW(ELEM, name)                                                                       \
    [COLLX_ELEM_##ELEM] = {[COLLX_OP_MINLOC] = minloc_##name, [COLLX_OP_MAXLOC] = maxloc_##name}

const struct collx_kernel_table KERNELS = {{
    INTEGER_ROW(I8, 8, i),
    INTEGER_ROW(I16, 16, i),
    INTEGER_ROW(I32, 32, i),
    INTEGER_ROW(I64, 64, i),
    INTEGER_ROW(U8, 8, u),
    INTEGER_ROW(U16, 16, u),
    INTEGER_ROW(U32, 32, u),
    INTEGER_ROW(U64, 64, u),
    FLOATING_ROW(F16, f16),
    FLOATING_ROW(BF16, bf16),
    FLOATING_ROW(F32, f32),
    FLOATING_ROW(F64, f64),
    [COLLX_ELEM_C64] = {[COLLX_OP_SUM] = sum_c64},
    [COLLX_ELEM_C128] = {[COLLX_OP_SUM] = sum_c128},
    PAIR_ROW(I16_INT, i16_int),
    PAIR_ROW(I32_INT, i32_int),
    PAIR_ROW(I64_INT, i64_int),
    PAIR_ROW(F32_INT, f32_int),
    PAIR_ROW(F64_INT, f64_int),
    PAIR_ROW(2F32, two_f32),
    PAIR_ROW(2F64, two_f64),
}};
