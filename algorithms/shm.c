#include "algorithms/shm.h"

#include "base/error.h"

#include <stdio.h>
#if defined(__x86_64__)
#include <emmintrin.h>
#endif

int collx_query_one_node(const struct collx_facts *facts, char *why, size_t size)
{
    if (facts->nodes == 1)
        return 0;
    snprintf(why, size, "the communicator spans %d nodes; shm needs all ranks on one",
             facts->nodes);
    return COLLX_EUNFIT;
}

/* Measured on two cores of a Xeon (Cascade Lake): plain stores win below, in both states of the
 * machine; see bench/. */
enum { STREAM_FROM = 8192 };

#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
void collx_copy_in(void *shared, const void *from, size_t bytes)
{
    char *to = shared;
    const char *source = from;

    if (bytes < STREAM_FROM) {
        memcpy(shared, from, bytes);
        return;
    }
    size_t head = -(uintptr_t)to & 63;
    memcpy(to, source, head);
    to += head;
    source += head;
    bytes -= head;
    for (; bytes >= 64; bytes -= 64, to += 64, source += 64) {
        __m128i a = _mm_loadu_si128((const __m128i *)source);
        __m128i b = _mm_loadu_si128((const __m128i *)(source + 16));
        __m128i c = _mm_loadu_si128((const __m128i *)(source + 32));
        __m128i d = _mm_loadu_si128((const __m128i *)(source + 48));
        _mm_stream_si128((__m128i *)to, a);
        _mm_stream_si128((__m128i *)(to + 16), b);
        _mm_stream_si128((__m128i *)(to + 32), c);
        _mm_stream_si128((__m128i *)(to + 48), d);
    }
    memcpy(to, source, bytes);
    /* Streaming stores are not ordered by the release store of the flag that follows. */
    _mm_sfence();
}
#else
void collx_copy_in(void *shared, const void *from, size_t bytes)
{
    memcpy(shared, from, bytes);
}
#endif
