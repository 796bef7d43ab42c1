/* Floating-point numbers of 16 bits, as bits: binary16 (f16) and the upper half of a float (bf16).
 *
 * Written without branches, so that the compiler makes vector instructions of them on every CPU,
 * and, of f16, without denormal operands, which a program may have told the CPU to take for zero.
 * Those of bf16 are a float's own.
 */
#ifndef COLLX_HALF_H
#define COLLX_HALF_H

#include <stdint.h>

static inline float collx_float_of_bits(uint32_t bits)
{
    union {
        uint32_t bits;
        float value;
    } as = {.bits = bits};

    return as.value;
}

static inline uint32_t collx_bits_of_float(float value)
{
    union {
        float value;
        uint32_t bits;
    } as = {.value = value};

    return as.bits;
}

/* Not ?:, which lets the compiler branch around the operation behind the other one. */
static inline uint32_t collx_pick(int first, uint32_t a, uint32_t b)
{
    uint32_t mask = -(uint32_t)first;

    return (a & mask) | (b & ~mask);
}

static inline float f16_to_float(uint16_t half)
{
    uint32_t magnitude = half & 0x7fffu, sign = (half & 0x8000u) << 16;
    /* The exponent's bias is 15 here and 127 there; the highest one stands for no number. */
    uint32_t normal = (magnitude << 13) + (112u << 23);
    uint32_t beyond = (magnitude << 13) | 0x7f800000u;
    /* Below 2^-14 halves are multiples of 2^-24. */
    uint32_t small = collx_bits_of_float((float)(int32_t)magnitude * 0x1p-24f);

    normal = magnitude >= 0x7c00 ? beyond : normal;
    return collx_float_of_bits(collx_pick(magnitude < 0x0400, small, normal) | sign);
}

/* To the nearest, in the middle to the even one. */
static inline uint16_t f16_from_float(float value)
{
    uint32_t bits = collx_bits_of_float(value), sign = bits >> 16 & 0x8000u;
    uint32_t magnitude = bits & 0x7fffffffu;
    /* A carry out of the digits goes into the exponent, and at last makes it infinity. */
    uint32_t normal = (magnitude - (112u << 23) + 0xfff + (magnitude >> 13 & 1)) >> 13;
    /* Adding 2^-1, whose last digit is 2^-24, rounds there. */
    uint32_t small =
        collx_bits_of_float(collx_float_of_bits(magnitude) + 0.5f) - collx_bits_of_float(0.5f);
    uint32_t nan = 0x7e00u | (magnitude >> 13 & 0x3ffu);

    normal = magnitude >= 0x47800000u ? 0x7c00u : normal;
    normal = magnitude > 0x7f800000u ? nan : normal;
    return (uint16_t)(collx_pick(magnitude < 0x38800000u, small, normal) | sign);
}

/* `b`, or `a` if that is a NaN. */
static inline uint16_t f16_or_nan(uint16_t a, uint16_t b)
{
    return (uint16_t)collx_pick((a & 0x7fff) > 0x7c00, a, b);
}

static inline float bf16_to_float(uint16_t half)
{
    return collx_float_of_bits((uint32_t)half << 16);
}

static inline uint16_t bf16_from_float(float value)
{
    uint32_t bits = collx_bits_of_float(value);
    uint32_t number = (bits + 0x7fff + (bits >> 16 & 1)) >> 16, nan = bits >> 16 | 0x40;

    return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? nan : number);
}

static inline uint16_t bf16_or_nan(uint16_t a, uint16_t b)
{
    return (uint16_t)collx_pick((a & 0x7fff) > 0x7f80, a, b);
}

#endif
