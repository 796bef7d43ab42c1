#include "algorithms/copy.h"

#include "algorithms/reduce.h"
#include "base/clock.h"

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

enum {
    /* Up to here lines are pushed towards their reader. */
    DEMOTE_TO = 1024,
    /* So many bytes ahead of its stores a copy claims lines: as many as a CPU fetches at once. */
    CLAIM_AHEAD = 1024,
    /* A timed copy costs 50 ns more. */
    TIME_EVERY = 8,
    /* Bytes a nanosecond: plain stores over lines that a reader holds were measured at 9 to 12
     * where CPUs share a cache, and at 2 where they are far apart, where streaming stores made 30.
     */
    SLOW = 4,
    STREAM_FOR = 256,
    /* Reads between looks at what returning lines costs, where it has been cheap. */
    RETURN_FOR = 64,
    /* Reads until it is tried again where it is not: at first, and at most. */
    PATIENCE = 16,
    PATIENCE_MOST = 4096,
    /* ns that returning lines may take where they are the reader's: 0.5 to 1.3 a line were measured
     * there, and stores that have to ask for theirs take 10 and more. */
    RETURN_FIXED = 80,
    RETURN_LINES = 3,
};

#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
static void stream(char *to, const char *from, size_t bytes)
{
    size_t head = -(uintptr_t)to & 63;

    memcpy(to, from, head);
    to += head;
    from += head;
    bytes -= head;
    for (; bytes >= 64; bytes -= 64, to += 64, from += 64) {
        __m128i a = _mm_loadu_si128((const __m128i *)from);
        __m128i b = _mm_loadu_si128((const __m128i *)(from + 16));
        __m128i c = _mm_loadu_si128((const __m128i *)(from + 32));
        __m128i d = _mm_loadu_si128((const __m128i *)(from + 48));
        _mm_stream_si128((__m128i *)to, a);
        _mm_stream_si128((__m128i *)(to + 16), b);
        _mm_stream_si128((__m128i *)(to + 32), c);
        _mm_stream_si128((__m128i *)(to + 48), d);
    }
    memcpy(to, from, bytes);
    /* Streaming stores are not ordered by the release store of the flag that follows. */
    _mm_sfence();
}

static void plain(char *to, const char *from, size_t bytes)
{
    if (bytes < 16) {
        memcpy(to, from, bytes);
        return;
    }
    if (bytes > CLAIM_AHEAD)
        collx_copy_claim(to, CLAIM_AHEAD);
    for (; bytes > CLAIM_AHEAD; to += 64, from += 64, bytes -= 64) {
        collx_copy_claim(to + CLAIM_AHEAD, 1);
        for (size_t at = 0; at < 64; at += 16)
            _mm_storeu_si128((__m128i *)(to + at), _mm_loadu_si128((const __m128i *)(from + at)));
    }
    for (size_t at = 0; at + 16 <= bytes; at += 16)
        _mm_storeu_si128((__m128i *)(to + at), _mm_loadu_si128((const __m128i *)(from + at)));
    _mm_storeu_si128((__m128i *)(to + bytes - 16),
                     _mm_loadu_si128((const __m128i *)(from + bytes - 16)));
}

/* What has been written leaves this core's own caches for the one that the reader looks into first,
 * before it asks: from 64 bytes to 1 KiB it then waits a fifth less.  For more the reader comes
 * before the lines have moved. */
__attribute__((target("cldemote"))) static void demote(const char *shared, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += 64)
        __builtin_ia32_cldemote(shared + at);
}

static bool can_demote(void)
{
    enum { UNKNOWN, NO, YES };
    static _Atomic int known;
    unsigned a, b, c = 0, d;

    /* Asked once: in a virtual machine cpuid takes long. */
    if (atomic_load_explicit(&known, memory_order_relaxed) == UNKNOWN)
        atomic_store_explicit(
            &known, __get_cpuid_count(7, 0, &a, &b, &c, &d) && c & bit_CLDEMOTE ? YES : NO,
            memory_order_relaxed);
    return atomic_load_explicit(&known, memory_order_relaxed) == YES;
}

__attribute__((target("avx2"))) static void out_avx2(void *to, const void *shared, size_t bytes)
{
    char *t = to;
    const char *s = shared;

    if (bytes < 32) {
        memcpy(to, shared, bytes);
        return;
    }
    for (size_t at = 0; at + 32 <= bytes; at += 32)
        _mm256_storeu_si256((__m256i *)(t + at), _mm256_loadu_si256((const __m256i *)(s + at)));
    _mm256_storeu_si256((__m256i *)(t + bytes - 32),
                        _mm256_loadu_si256((const __m256i *)(s + bytes - 32)));
}

__attribute__((target("avx512f"))) static void out_avx512(void *to, const void *shared,
                                                          size_t bytes)
{
    char *t = to;
    const char *s = shared;

    if (bytes < 64) {
        memcpy(to, shared, bytes);
        return;
    }
    for (size_t at = 0; at + 64 <= bytes; at += 64)
        _mm512_storeu_si512(t + at, _mm512_loadu_si512(s + at));
    _mm512_storeu_si512(t + bytes - 64, _mm512_loadu_si512(s + bytes - 64));
}
#else
static void stream(char *to, const char *from, size_t bytes)
{
    memcpy(to, from, bytes);
}

static void plain(char *to, const char *from, size_t bytes)
{
    memcpy(to, from, bytes);
}

static void demote(const char *shared, size_t bytes)
{
    (void)shared;
    (void)bytes;
}

static bool can_demote(void)
{
    return false;
}
#endif

static void out_memcpy(void *to, const void *shared, size_t bytes)
{
    memcpy(to, shared, bytes);
}

void collx_copier_init(struct collx_copier *copier)
{
    *copier =
        (struct collx_copier){.out = out_memcpy, .demotes = can_demote(), .patience = PATIENCE};
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
    if (collx_reduce_version() == COLLX_KERNELS_AVX512)
        copier->out = out_avx512;
    else if (collx_reduce_version() == COLLX_KERNELS_AVX2)
        copier->out = out_avx2;
#endif
}

/* Lines that have been returned need no claims, and come fast enough for large stores. */
static void store(const struct collx_copier *copier, void *shared, const void *from, size_t bytes)
{
    if (copier->returned && bytes >= COLLX_COPY_RETURNED)
        copier->out(shared, from, bytes);
    else
        plain(shared, from, bytes);
}

void collx_copy_in(struct collx_copier *copier, void *shared, const void *from, size_t bytes)
{
    if (bytes < COLLX_COPY_LARGE) {
        store(copier, shared, from, bytes);
        if (copier->demotes && bytes <= DEMOTE_TO)
            demote(shared, bytes);
        return;
    }
    if (copier->streaming) {
        copier->streaming--;
        stream(shared, from, bytes);
        return;
    }
    if (++copier->copies % TIME_EVERY) {
        store(copier, shared, from, bytes);
        return;
    }
    uint64_t begin = collx_clock_ns();
    store(copier, shared, from, bytes);
    bool slow = (collx_clock_ns() - begin) * SLOW > bytes;
    /* One may have met a page fault, or lost its CPU. */
    copier->slow = slow ? copier->slow + 1 : 0;
    if (copier->slow == 3) {
        copier->slow = 0;
        copier->streaming = STREAM_FOR;
    }
}

/* Volatile: a store of what is there already is one that a compiler would leave out. */
static void return_lines(const void *shared, size_t bytes)
{
    volatile char *line = (volatile char *)(uintptr_t)shared, *end = line + bytes;

    for (; line < end; line += COLLX_LINE_LEAST)
        *line = *line;
}

void collx_copy_return_lines(struct collx_copier *copier, const void *shared, size_t bytes)
{
    if (copier->reads) {
        copier->reads--;
        if (copier->returns)
            return_lines(shared, bytes);
        return;
    }
    uint64_t begin = collx_clock_ns();
    return_lines(shared, bytes);
    /* The stores have got their lines when this is over. */
    atomic_thread_fence(memory_order_seq_cst);
    uint64_t took = collx_clock_ns() - begin;
    copier->returns = took <= RETURN_FIXED + bytes / COLLX_LINE_LEAST * RETURN_LINES;
    if (copier->returns) {
        copier->patience = PATIENCE;
        copier->reads = RETURN_FOR;
    } else {
        copier->reads = copier->patience;
        copier->patience = copier->patience < PATIENCE_MOST ? 2 * copier->patience : PATIENCE_MOST;
    }
}
