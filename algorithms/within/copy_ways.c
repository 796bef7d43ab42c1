#include "algorithms/within/copy_ways.h"

#include "algorithms/reduction/reduce.h"
#include "algorithms/within/copy.h"
#include "base/options.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static void any(void *to, const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
}

/* Streaming stores want whole lines, aligned. */
#define STREAM(name, isa, line)                                                                    \
    __attribute__((target(isa))) static void name(void *shared, const void *source, size_t bytes)  \
    {                                                                                              \
        char *to = shared;                                                                         \
        const char *from = source;                                                                 \
        size_t head = -(uintptr_t)to & 63;                                                         \
                                                                                                   \
        head = head < bytes ? head : bytes;                                                        \
        memcpy(to, from, head);                                                                    \
        for (to += head, from += head, bytes -= head; bytes >= 64; bytes -= 64, to += 64)          \
            line(to, from), from += 64;                                                            \
        memcpy(to, from, bytes);                                                                   \
    }

/* ThreadSanitizer would not see stores by intrinsics. */
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
#include <cpuid.h>
#include <immintrin.h>

enum {
    /* So many bytes ahead of its stores a copy claims lines: as many as a CPU fetches at once. */
    CLAIM_AHEAD = 1024,
    /* From here on stores are aligned: malloc() gives out large memory 16 bytes into a line, and
     * then each store of 64 bytes would be one to two lines.  A Bcast of 4 and 8 KiB takes 1 to 2 %
     * less time so on an Emerald Rapids, an Allreduce of 512 KiB 4 %. */
    STORES_ALIGNED = 2048,
};

/* Vectors of `size` bytes. */
#define TWO(move, size, to, from) move(to, from), move((to) + (size), (from) + (size))
#define FOUR(move, size, to, from)                                                                 \
    TWO(move, size, to, from), TWO(move, size, (to) + 2 * (size), (from) + 2 * (size))
#define EIGHT(move, size, to, from)                                                                \
    FOUR(move, size, to, from), FOUR(move, size, (to) + 4 * (size), (from) + 4 * (size))

/* While a flag is on its way a CPU goes on as if it were there, and what follows comes at the same
 * time; but it goes on past so many taken branches only, a Zen 3 past a few dozen.  One for each
 * vector would be too many: a Bcast of 1 KiB would take 0.40 us between CPUs far apart instead of
 * 0.27, and 0.22 instead of 0.17 where they share a cache.  So there is one for eight, and hardly
 * any for those left over. */
#define IN_VECTORS(name, isa, size, move)                                                          \
    __attribute__((target(isa))) static void name(void *shared, const void *source, size_t bytes)  \
    {                                                                                              \
        char *to = shared;                                                                         \
        const char *from = source;                                                                 \
        if (bytes < (size)) {                                                                      \
            memcpy(to, from, bytes);                                                               \
            return;                                                                                \
        }                                                                                          \
        const size_t head = -(uintptr_t)to & ((size)-1);                                           \
        if (bytes >= STORES_ALIGNED && head)                                                       \
            move(to, from), to += head, from += head, bytes -= head;                               \
        for (; bytes >= 8 * (size); bytes -= 8 * (size), to += 8 * (size), from += 8 * (size))     \
            EIGHT(move, size, to, from);                                                           \
        if (bytes & 4 * (size))                                                                    \
            FOUR(move, size, to, from), to += 4 * (size), from += 4 * (size);                      \
        if (bytes & 2 * (size))                                                                    \
            TWO(move, size, to, from), to += 2 * (size), from += 2 * (size);                       \
        if (bytes & (size))                                                                        \
            move(to, from), to += (size), from += (size);                                          \
        bytes &= (size)-1;                                                                         \
        if (bytes)                                                                                 \
            move(to + bytes - (size), from + bytes - (size));                                      \
    }

#define MOVE_SSE2(to, from)                                                                        \
    _mm_storeu_si128((__m128i *)(to), _mm_loadu_si128((const __m128i *)(from)))
#define MOVE_AVX2(to, from)                                                                        \
    _mm256_storeu_si256((__m256i *)(to), _mm256_loadu_si256((const __m256i *)(from)))
#define MOVE_AVX512(to, from) _mm512_storeu_si512(to, _mm512_loadu_si512(from))
IN_VECTORS(small, "sse2", sizeof(__m128i), MOVE_SSE2)
IN_VECTORS(wide_avx2, "avx2", sizeof(__m256i), MOVE_AVX2)
IN_VECTORS(wide_avx512, "avx512f", sizeof(__m512i), MOVE_AVX512)

static void plain(void *shared, const void *source, size_t bytes)
{
    char *to = shared;
    const char *from = source;

    if (bytes > CLAIM_AHEAD)
        collx_copy_claim(to, CLAIM_AHEAD);
    for (; bytes > CLAIM_AHEAD; to += 64, from += 64, bytes -= 64) {
        collx_copy_claim(to + CLAIM_AHEAD, 1);
        FOUR(MOVE_SSE2, 16, to, from);
    }
    small(to, from, bytes);
}

#define PIECE_SSE2(to, from)                                                                       \
    _mm_stream_si128((__m128i *)(to), _mm_loadu_si128((const __m128i *)(from)))
#define PIECE_AVX2(to, from)                                                                       \
    _mm256_stream_si256((__m256i *)(to), _mm256_loadu_si256((const __m256i *)(from)))
#define LINE_SSE2(to, from) FOUR(PIECE_SSE2, 16, to, from)
#define LINE_AVX2(to, from) TWO(PIECE_AVX2, 32, to, from)
#define LINE_AVX512(to, from) _mm512_stream_si512((void *)(to), _mm512_loadu_si512(from))
STREAM(stream_sse2, "sse2", LINE_SSE2)
STREAM(stream_avx2, "avx2", LINE_AVX2)
STREAM(stream_avx512, "avx512f", LINE_AVX512)

/* The string instruction stores whole lines, and a CPU may see that nothing of what is in them is
 * needed.  Into lines that another CPU has a Zen 5 then takes 0.4 us for 8 KiB instead of 1.4 where
 * it is far away, and 0.15 instead of 0.28 where both share a cache.  Such stores are in no order
 * among themselves, but before every one that follows: no fence has to see to that. */
static void string(void *to, const void *from, size_t bytes)
{
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
}

#define IN_WHOLE_LINES(way)                                                                        \
    static void way##_or_string(void *to, const void *from, size_t bytes)                          \
    {                                                                                              \
        if (bytes < COLLX_COPY_WHOLE)                                                              \
            way(to, from, bytes);                                                                  \
        else                                                                                       \
            string(to, from, bytes);                                                               \
    }
IN_WHOLE_LINES(plain)
IN_WHOLE_LINES(any)
IN_WHOLE_LINES(wide_avx2)
IN_WHOLE_LINES(wide_avx512)

/* Without whole lines, and with them. */
#define IN_PARTS_AND_WHOLE(wide_, stream_)                                                         \
    {                                                                                              \
        {.plain = plain, .wide = wide_, .stream = stream_},                                        \
        {                                                                                          \
            .plain = plain_or_string, .wide = wide_##_or_string, .stream = stream_,                \
            .whole_lines = true                                                                    \
        }                                                                                          \
    }

/* Compilers know it by name only since 2024.  Asked once: in a virtual machine cpuid takes long. */
static bool is_zen5(void)
{
    enum { FAMILY = 0x1a, NO = 1, YES };
    static _Atomic int known;
    int answer = atomic_load_explicit(&known, memory_order_relaxed);
    unsigned a, b, c, d;

    if (!answer) {
        const bool is = __builtin_cpu_is("amd") && __get_cpuid(1, &a, &b, &c, &d) &&
                        (a >> 8 & 0xf) + (a >> 20 & 0xff) == FAMILY;
        answer = is ? YES : NO;
        atomic_store_explicit(&known, answer, memory_order_relaxed);
    }
    return answer == YES;
}

static struct collx_copy_ways of_cpu(void)
{
    static const struct collx_copy_ways all[][2] = {
        [COLLX_KERNELS_C] = IN_PARTS_AND_WHOLE(any, stream_sse2),
        [COLLX_KERNELS_AVX2] = IN_PARTS_AND_WHOLE(wide_avx2, stream_avx2),
        [COLLX_KERNELS_AVX512] = IN_PARTS_AND_WHOLE(wide_avx512, stream_avx512),
    };
    const int64_t wanted = collx_option_number(COLLX_OPTION_WHOLE_LINES);

    __builtin_cpu_init();
    const bool whole = wanted == COLLX_TRISTATE_AUTO ? is_zen5() : wanted == COLLX_TRISTATE_ON;
    struct collx_copy_ways ways = all[collx_reduce_version()][whole];

    /* A Zen 4 gains by it, an Emerald Rapids loses.  A Zen 3 gains from 1 KiB on; a Bcast of 256
     * bytes takes 76 ns there instead of 97 if its lines are left alone. */
    ways.returnable = __builtin_cpu_is("amd");
    ways.returnable_short = ways.returnable && !__builtin_cpu_is("znver3");
    /* Intel's gain, too: a Bcast of 1 KiB, the root another one each time, takes 0.30 us on an Ice
     * Lake instead of 0.43, and 0.29 on an Emerald Rapids instead of 0.44. */
    ways.swings = true;
    return ways;
}
#elif defined(__aarch64__) && !defined(__SANITIZE_THREAD__)
/* A pair of registers with the hint that no cache shall keep them.  What a CPU makes of it is its
 * own affair; in order they are as all stores. */
static inline void line_pairs(void *to, const void *from)
{
    __asm__ volatile("ldp q0, q1, [%1]; ldp q2, q3, [%1, #32];"
                     "stnp q0, q1, [%0]; stnp q2, q3, [%0, #32]"
                     :
                     : "r"(to), "r"(from)
                     : "v0", "v1", "v2", "v3", "memory");
}
STREAM(stream_pairs, "+simd", line_pairs)

static struct collx_copy_ways of_cpu(void)
{
    return (struct collx_copy_ways){.plain = any, .wide = any, .stream = stream_pairs};
}
#else
static struct collx_copy_ways of_cpu(void)
{
    return (struct collx_copy_ways){.plain = any, .wide = any, .stream = any};
}
#endif

struct collx_copy_ways collx_copy_ways(void)
{
    const int64_t wanted = collx_option_number(COLLX_OPTION_RETURN);
    struct collx_copy_ways ways = of_cpu();

    if (wanted != COLLX_TRISTATE_AUTO)
        ways.returnable = ways.returnable_short = ways.swings = wanted == COLLX_TRISTATE_ON;
    return ways;
}
