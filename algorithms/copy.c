#include "algorithms/copy.h"

#include "base/clock.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#if defined(__x86_64__)
#include <emmintrin.h>
#endif

enum {
    /* Below, plain stores win everywhere. */
    LARGE_FROM = 4096,
    /* A timed copy costs 50 ns more. */
    TIME_EVERY = 8,
    /* Bytes a nanosecond: plain stores over lines that a reader holds were measured at 9 to 12
     * where CPUs share a cache, and at 2 where they are far apart, where streaming stores made 30.
     */
    SLOW = 4,
    STREAM_FOR = 256,
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
#else
static void stream(char *to, const char *from, size_t bytes)
{
    memcpy(to, from, bytes);
}
#endif

void collx_copy_in(struct collx_copier *copier, void *shared, const void *from, size_t bytes)
{
    if (bytes < LARGE_FROM) {
        memcpy(shared, from, bytes);
        return;
    }
    if (copier->streaming) {
        copier->streaming--;
        stream(shared, from, bytes);
        return;
    }
    if (++copier->copies % TIME_EVERY) {
        memcpy(shared, from, bytes);
        return;
    }
    uint64_t begin = collx_clock_ns();
    memcpy(shared, from, bytes);
    bool slow = (collx_clock_ns() - begin) * SLOW > bytes;
    /* One may have met a page fault, or lost its CPU. */
    copier->slow = slow ? copier->slow + 1 : 0;
    if (copier->slow == 3) {
        copier->slow = 0;
        copier->streaming = STREAM_FOR;
    }
}
