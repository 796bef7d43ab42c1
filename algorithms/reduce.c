#include "algorithms/reduce.h"

/* Buffers come as the caller aligned them, in pieces that need not be: a type of alignment 1 makes
 * the compiler emit loads that do not care, and still lets it vectorise.  The result may be an
 * operand, so `restrict` would be a lie; that no element depends on another one is what ivdep says.
 */
#define KERNEL(name, type, expression)                                                             \
    static void name(const void *left, const void *right, void *result, size_t count)              \
    {                                                                                              \
        typedef type __attribute__((aligned(1), may_alias)) element;                               \
        const element *lefts = left, *rights = right;                                              \
        element *results = result;                                                                 \
        _Pragma("GCC ivdep") for (size_t i = 0; i < count; i++)                                    \
        {                                                                                          \
            type a = lefts[i], b = rights[i];                                                      \
            results[i] = (type)(expression);                                                       \
        }                                                                                          \
    }

/* Signed sums and products wrap around as in every MPI library, which for them is the unsigned
 * operation; there is one kernel for both. */
#define UNSIGNED(bits)                                                                             \
    KERNEL(sum_u##bits, uint##bits##_t, a + b)                                                     \
    KERNEL(prod_u##bits, uint##bits##_t, (uint##bits##_t)(1u * a * b))                             \
    KERNEL(min_u##bits, uint##bits##_t, b < a ? b : a)                                             \
    KERNEL(max_u##bits, uint##bits##_t, b > a ? b : a)                                             \
    KERNEL(min_i##bits, int##bits##_t, b < a ? b : a)                                              \
    KERNEL(max_i##bits, int##bits##_t, b > a ? b : a)                                              \
    KERNEL(band_u##bits, uint##bits##_t, a &b)                                                     \
    KERNEL(bor_u##bits, uint##bits##_t, a | b)                                                     \
    KERNEL(bxor_u##bits, uint##bits##_t, a ^ b)                                                    \
    KERNEL(land_u##bits, uint##bits##_t, a &&b)                                                    \
    KERNEL(lor_u##bits, uint##bits##_t, a || b)                                                    \
    KERNEL(lxor_u##bits, uint##bits##_t, !a != !b)

/* Where neither is less, a NaN among them, a minimum or maximum is what it was: the left one. */
#define FLOATING(name, type)                                                                       \
    KERNEL(sum_##name, type, a + b)                                                                \
    KERNEL(prod_##name, type, a *b)                                                                \
    KERNEL(min_##name, type, b < a ? b : a)                                                        \
    KERNEL(max_##name, type, b > a ? b : a)

UNSIGNED(8)
UNSIGNED(16)
UNSIGNED(32)
UNSIGNED(64)
FLOATING(f32, float)
FLOATING(f64, double)

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

static collx_reduce_fn *const kernels[COLLX_ELEMS][COLLX_OP_COUNT] = {
    INTEGER_ROW(I8, 8, i),   INTEGER_ROW(I16, 16, i), INTEGER_ROW(I32, 32, i),
    INTEGER_ROW(I64, 64, i), INTEGER_ROW(U8, 8, u),   INTEGER_ROW(U16, 16, u),
    INTEGER_ROW(U32, 32, u), INTEGER_ROW(U64, 64, u), FLOATING_ROW(F32, f32),
    FLOATING_ROW(F64, f64),
};

collx_reduce_fn *collx_reduce_kernel(enum collx_op op, enum collx_elem elem)
{
    return op < COLLX_OP_COUNT && elem < COLLX_ELEMS ? kernels[elem][op] : NULL;
}
