/* Where each rank puts what it contributes to an Allreduce of small vectors, and where the others
 * find it.
 *
 * Everybody reads everybody's, so each group of ranks (allreduce_plan.h) has a table of shares, one
 * of each rank of the team: those that its members write themselves, and copies of the others',
 * each written by a member that is its relay.  Flat, there is one group.
 */
#ifndef COLLX_ALLREDUCE_SHARES_H
#define COLLX_ALLREDUCE_SHARES_H

#include "algorithms/allreduce/allreduce_plan.h"
#include "algorithms/within/numbered.h"

/* In one round; what is longer than COLLX_INLINE goes on in numbered lines (numbered.h) or lies in
 * the data behind. */
struct collx_share {
    struct collx_flag flag;
    _Alignas(COLLX_LINE) struct collx_numbered more;
    _Alignas(COLLX_LINE) unsigned char data[];
};
_Static_assert(sizeof(struct collx_share) % COLLX_LINE == 0, "data begins on a line");

/* `rank` is of another group, which has this table; in ours we write a copy of its shares. */
struct collx_relayed {
    unsigned char *from;
    int rank;
};

struct collx_shares {
    struct collx_groups_plan plan;
    struct collx_groups groups;
    unsigned char *memory; /* a table for each group */
    unsigned char *table;  /* that of our own group */
    size_t stride;         /* from one share to the next one */
    size_t step;           /* from one group's table to the next one's */
    bool swapped;          /* as between two ranks */
    struct collx_relayed *relayed;
    int relays;
};

/* The longest vectors of so many ranks that go this way, in bytes: since everybody reads them all,
 * they become shorter with the number of ranks.  `returnable`: as the ranks have agreed (shm.h). */
size_t collx_shares_most(int ranks, bool returnable);

/* Bytes in the segment, a multiple of COLLX_LINE. */
size_t collx_shares_space(const struct collx_groups_plan *plan, int ranks, int numa_nodes);

/* See collx_algorithm.place. */
void collx_shares_place(const struct collx_groups_plan *plan, const struct collx_team *team,
                        void *memory);

/* `memory`: collx_shares_space() bytes, the same on all ranks, zeroed.  0 or -ENOMEM; to be
 * finished in either case. */
int collx_shares_init(struct collx_shares *shares, const struct collx_groups_plan *plan,
                      const struct collx_team *team, void *memory);
void collx_shares_finish(struct collx_shares *shares);

/* In a table, the share of `rank` in this round.  A rank has two, in turn; but two ranks have one
 * each, and swap them after each round: whoever has read a share writes there next. */
static inline struct collx_share *collx_share_in(const struct collx_shares *shares,
                                                 unsigned char *table, int rank, uint64_t round)
{
    const unsigned index = ((unsigned)rank << !shares->swapped) ^ (round & 1);

    return (struct collx_share *)(table + index * shares->stride);
}

/* Where we find what `rank` contributes; of our own, where we put it. */
static inline struct collx_share *collx_share_of(const struct collx_shares *shares, int rank,
                                                 uint64_t round)
{
    return collx_share_in(shares, shares->table, rank, round);
}

/* Where a vector of `bytes` bytes lies in it. */
static inline unsigned char *collx_share_data(struct collx_share *share, size_t bytes)
{
    return bytes <= COLLX_INLINE ? share->flag.payload : share->data;
}

/* Wait for a share of `rank`, in whatever table, where polling it has not been enough. */
void collx_shares_wait_long(struct collx_team *team, const struct collx_shares *shares,
                            struct collx_share *share, int rank, uint64_t round);

static inline void collx_shares_wait(struct collx_team *team, const struct collx_shares *shares,
                                     struct collx_share *share, int rank, uint64_t round)
{
    if (__builtin_expect(!collx_spin_for(team, &share->flag, round), 0))
        collx_shares_wait_long(team, shares, share, rank, round);
}

/* In numbered lines: put ours there, and post it. */
static inline void collx_shares_put_numbered(const struct collx_team *team,
                                             const struct collx_shares *shares, uint64_t round,
                                             const unsigned char *from, size_t bytes)
{
    struct collx_share *own = collx_share_of(shares, team->rank, round);

    collx_numbered_put(team, &own->flag, &own->more, round, from, bytes);
}

/* Likewise: wait for that of `rank`, and copy it together. */
static inline void collx_shares_get_numbered(struct collx_team *team,
                                             const struct collx_shares *shares, int rank,
                                             uint64_t round, unsigned char *to, size_t bytes)
{
    struct collx_share *share = collx_share_of(shares, rank, round);

    collx_shares_wait(team, shares, share, rank, round);
    collx_numbered_get(team, &share->flag, &share->more, round, rank, "Allreduce", to, bytes);
}

/* Copy what we relay in this round, each when it is there. */
void collx_shares_relay(struct collx_team *team, const struct collx_shares *shares, uint64_t round,
                        size_t bytes);

/* Claim our own share of the next round, for `bytes` bytes, which `copier` has copied.  Swapped, it
 * is what we have just read: where lines move to who reads them (copy.h) they are ours by now. */
static inline void collx_shares_claim(const struct collx_team *team,
                                      const struct collx_shares *shares,
                                      const struct collx_copier *copier, uint64_t round,
                                      size_t bytes)
{
    struct collx_share *own = collx_share_of(shares, team->rank, round + 1);

    /* We read as much as we write, and both want their lines. */
    if ((shares->swapped && copier->ways.returnable) ||
        !collx_copy_claims(copier, 2 * bytes, bytes))
        return;
    collx_claim_line(team, &own->flag.claimed);
    if (bytes > COLLX_INLINE)
        collx_claim(team, collx_share_data(own, bytes), bytes);
}

/* The same in numbered lines, which are not swapped. */
static inline void collx_shares_claim_numbered(const struct collx_team *team,
                                               const struct collx_shares *shares, uint64_t round,
                                               size_t bytes)
{
    struct collx_share *own = collx_share_of(shares, team->rank, round + 1);

    collx_claim_line(team, &own->flag.claimed);
    collx_numbered_claim(team, &own->more, bytes);
}

#endif
