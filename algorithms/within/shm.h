/* What the algorithms named "shm" have in common. */
#ifndef COLLX_ALGORITHMS_SHM_H
#define COLLX_ALGORITHMS_SHM_H

#include "algorithms/wait.h"
#include "algorithms/within/copy.h"

#include <string.h>

/* collx_algorithm.query: every rank must be on one node. */
int collx_query_one_node(const struct collx_facts *facts, const struct collx_args *args, char *why,
                         size_t size);

/* What the ranks of a team must hold alike of what they know of their CPUs. */
enum {
    COLLX_SHM_AGREED = 1,
    COLLX_SHM_WHOLE_LINES = 2,
    COLLX_SHM_RETURNABLE = 4,
    COLLX_SHM_SWINGS = 8,
};

/* Whoever comes first decides for all: options, or a tool that simulates the CPU, may show a rank
 * another one than the others have.  `agreed`: in shared memory, zeroed; for this alone.  What it
 * is does not matter to results.  Not collective. */
uint32_t collx_shm_agree(_Atomic uint32_t *agreed, const struct collx_copy_ways *cpu);

/* A size or an address, rounded up to whole pages where there are several NUMA nodes: what is
 * placed on one of them has pages of its own. */
static inline uintptr_t collx_numa_up(uintptr_t bytes, int numa_nodes)
{
    return numa_nodes > 1 ? collx_page_up(bytes) : bytes;
}

/* Have lines ready that this rank writes in the next call (algorithms/within/copy.h).  Not where
 * there are more ranks than CPUs: whoever comes next on this CPU would find its own lines gone. */
static inline void collx_claim(const struct collx_team *team, void *shared, size_t bytes)
{
    if (__builtin_expect(!team->crowded, 1))
        collx_copy_claim(shared, bytes);
}

/* Likewise one line (collx_flag_claim). */
static inline void collx_claim_line(const struct collx_team *team, _Atomic uint32_t *claimed)
{
    if (__builtin_expect(!team->crowded, 1))
        collx_flag_claim(claimed);
}

/* Post a flag when `bytes` bytes have been copied in, and beside it, if they are many, whether
 * their lines are worth returning: collx_return() looks there. */
static inline void collx_post_copied(const struct collx_team *team,
                                     const struct collx_copier *copier, struct collx_flag *flag,
                                     uint64_t value, size_t bytes)
{
    if (bytes >= COLLX_COPY_RETURNED)
        flag->payload[0] = collx_copy_fetches(copier, bytes);
    collx_flag_post(team, flag, value);
}

/* Of the only one who reads there: return what has been read (algorithms/within/copy.h), if what is
 * beside its flag says that it is worth it.  Whoever wrote it reads what we write likewise, and its
 * CPU is like ours: if we return lines, so does it. */
static inline void collx_return(struct collx_copier *copier, const struct collx_flag *flag,
                                const void *shared, size_t bytes)
{
    if (bytes < COLLX_COPY_RETURNED || !flag->payload[0])
        return;
    collx_copy_return(copier, shared, bytes);
    copier->returned = copier->returns;
}

/* Up to COLLX_INLINE bytes; small enough that a call of memcpy would show. */
static inline void collx_copy_small(void *restrict to, const void *restrict from, size_t bytes)
{
    if (bytes == 8) {
        memcpy(to, from, 8);
    } else if (bytes >= 16) {
        memcpy(to, from, 16);
        for (size_t at = 16; at < bytes - 16; at += 16)
            memcpy((char *)to + at, (const char *)from + at, 16);
        memcpy((char *)to + bytes - 16, (const char *)from + bytes - 16, 16);
    } else if (bytes >= 8) {
        memcpy(to, from, 8);
        memcpy((char *)to + bytes - 8, (const char *)from + bytes - 8, 8);
    } else if (bytes >= 4) {
        memcpy(to, from, 4);
        memcpy((char *)to + bytes - 4, (const char *)from + bytes - 4, 4);
    } else if (bytes >= 2) {
        memcpy(to, from, 2);
        memcpy((char *)to + bytes - 2, (const char *)from + bytes - 2, 2);
    } else if (bytes) {
        memcpy(to, from, 1);
    }
}

/* The same of 32 to 128 bytes, in few instructions, which take a tenth of such a Bcast less than a
 * loop somewhere else. */
static inline void collx_copy_short(void *restrict to, const void *restrict from, size_t bytes)
{
    if (bytes > 64) {
        memcpy(to, from, 64);
        memcpy((char *)to + bytes - 64, (const char *)from + bytes - 64, 64);
    } else {
        memcpy(to, from, 32);
        memcpy((char *)to + bytes - 32, (const char *)from + bytes - 32, 32);
    }
}

#endif
