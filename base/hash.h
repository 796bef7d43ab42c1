/* FNV-1a: for telling things apart that nobody tries to confuse. */
#ifndef COLLX_HASH_H
#define COLLX_HASH_H

#include <stddef.h>
#include <stdint.h>

#define COLLX_HASH_START 0xcbf29ce484222325u

static inline uint64_t collx_hash(uint64_t hash, const void *data, size_t size)
{
    const unsigned char *byte = (const unsigned char *)data;

    for (size_t i = 0; i < size; i++)
        /* clang 14 takes all but the first byte of a number for uninitialised. */
        hash = (hash ^ byte[i]) * 0x100000001b3u; /* NOLINT(clang-analyzer-core.*) */
    return hash;
}

#endif
