/* A hash index over elements that somebody else keeps in an array. */
#ifndef COLLX_REPORT_INDEX_H
#define COLLX_REPORT_INDEX_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct collx_index {
    struct {
        uint32_t hash, element; /* element + 1; 0: free */
    } * slots;
    uint32_t room, used; /* room is 0 or a power of two */
};

static inline uint64_t collx_index_hash(uint64_t a, uint64_t b)
{
    uint64_t hash = (a ^ (b + 0x9e3779b97f4a7c15u)) * 0xbf58476d1ce4e5b9u;

    hash = (hash ^ (hash >> 31) ^ b) * 0x94d049bb133111ebu;
    return hash ^ (hash >> 29);
}

static inline bool collx_index_grow(struct collx_index *index)
{
    struct collx_index larger = {.room = index->room ? index->room * 2 : 64, .used = index->used};

    larger.slots = calloc(larger.room, sizeof *larger.slots);
    if (!larger.slots)
        return false;
    for (uint32_t i = 0; i < index->room; i++) {
        if (!index->slots[i].element)
            continue;
        uint32_t at = index->slots[i].hash & (larger.room - 1);
        while (larger.slots[at].element)
            at = (at + 1) & (larger.room - 1);
        larger.slots[at].hash = index->slots[i].hash;
        larger.slots[at].element = index->slots[i].element;
    }
    free(index->slots);
    *index = larger;
    return true;
}

/* The element that is `same` as key; when there is none, `fresh` is entered and returned.
 * UINT32_MAX: out of memory. */
static inline uint32_t collx_index_find(struct collx_index *index, uint64_t hash,
                                        bool (*same)(const void *elements, uint32_t element,
                                                     const void *key),
                                        const void *elements, const void *key, uint32_t fresh)
{
    if (index->used >= index->room / 2 && !collx_index_grow(index))
        return UINT32_MAX;
    uint32_t at = (uint32_t)hash & (index->room - 1);
    for (; index->slots[at].element; at = (at + 1) & (index->room - 1))
        if (index->slots[at].hash == (uint32_t)hash &&
            same(elements, index->slots[at].element - 1, key))
            return index->slots[at].element - 1;
    index->slots[at].hash = (uint32_t)hash;
    index->slots[at].element = fresh + 1;
    index->used++;
    return fresh;
}

static inline void collx_index_finish(struct collx_index *index)
{
    free(index->slots);
}

/* Room for one more element in an array of `count`, which grows in powers of two from 8.  `array`
 * is the address of the pointer to it. */
static inline bool collx_array_grow(void *array, uint32_t count, size_t element)
{
    void *base;

    if (count && (count < 8 || (count & (count - 1))))
        return true;
    memcpy(&base, array, sizeof base);
    base = realloc(base, (count ? count * 2 : 8) * element);
    if (base)
        memcpy(array, &base, sizeof base);
    return base;
}

#endif
