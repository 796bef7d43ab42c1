/* Where each rank puts what it contributes to an Allreduce of small vectors, and where the others
 * find it.
 *
 * Everybody reads everybody's, so each group of ranks (allreduce_plan.h) has a table of shares, one
 * of each rank of the team: those that its members write themselves, and copies of the others',
 * each written by a member that is its relay.  Flat, there is one group.
 */
#ifndef COLLX_ALLREDUCE_SHARES_H
#define COLLX_ALLREDUCE_SHARES_H

#include "algorithms/allreduce_plan.h"
#include "algorithms/numbered.h"

/* A share that is longer takes so long to copy that the others have looked at its flag by then, and
 * its line is theirs again: where lines come fast it is not worth claiming. */
enum { COLLX_SHARES_PROMPT = 1024 };

/* Of one rank, in two rounds; what is longer than COLLX_INLINE goes on in numbered lines
 * (numbered.h) or lies in the data behind, `room` bytes for each round. */
struct collx_share {
    struct collx_flag line[2];
    _Alignas(COLLX_LINE) struct collx_numbered more[2];
    unsigned char data[];
};
_Static_assert(sizeof(struct collx_share) % COLLX_LINE == 0, "data begins on a line");

/* Another group's share, and its copy in ours, which we write. */
struct collx_relayed {
    struct collx_share *from, *to;
    int rank;
};

struct collx_shares {
    struct collx_groups_plan plan;
    struct collx_groups groups;
    unsigned char *memory; /* a table for each group */
    unsigned char *table;  /* that of our own group */
    size_t stride;         /* from one rank's share to the next one's */
    size_t step;           /* from one group's table to the next one's */
    size_t room;           /* a multiple of COLLX_LINE */
    struct collx_relayed *relayed;
    int relays;
};

/* The longest vectors of so many ranks that go this way, in bytes: since everybody reads them all,
 * they become shorter with the number of ranks. */
size_t collx_shares_most(int ranks);

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

/* Where we find what `rank` contributes; of our own, where we put it. */
static inline struct collx_share *collx_share_of(const struct collx_shares *shares, int rank)
{
    return (struct collx_share *)(shares->table + (size_t)rank * shares->stride);
}

static inline struct collx_flag *collx_share_flag(struct collx_share *share, uint64_t round)
{
    return &share->line[round & 1];
}

/* Where a vector of `bytes` bytes lies in it. */
static inline unsigned char *collx_share_data(const struct collx_shares *shares,
                                              struct collx_share *share, uint64_t round,
                                              size_t bytes)
{
    return bytes <= COLLX_INLINE ? share->line[round & 1].payload
                                 : share->data + (round & 1) * shares->room;
}

/* Wait for a share of `rank`, in whatever table, where polling it has not been enough. */
void collx_shares_wait_long(struct collx_team *team, const struct collx_shares *shares,
                            struct collx_share *share, int rank, uint64_t round);

static inline void collx_shares_wait(struct collx_team *team, const struct collx_shares *shares,
                                     struct collx_share *share, int rank, uint64_t round)
{
    if (__builtin_expect(!collx_spin_for(team, collx_share_flag(share, round), round), 0))
        collx_shares_wait_long(team, shares, share, rank, round);
}

/* In numbered lines: put ours there, and post it. */
static inline void collx_shares_put_numbered(const struct collx_team *team,
                                             const struct collx_shares *shares, uint64_t round,
                                             const unsigned char *from, size_t bytes)
{
    struct collx_share *own = collx_share_of(shares, team->rank);

    collx_numbered_put(team, collx_share_flag(own, round), &own->more[round & 1], round, from,
                       bytes);
}

/* Likewise: wait for that of `rank`, and copy it together. */
static inline void collx_shares_get_numbered(struct collx_team *team,
                                             const struct collx_shares *shares, int rank,
                                             uint64_t round, unsigned char *to, size_t bytes)
{
    struct collx_share *share = collx_share_of(shares, rank);

    collx_shares_wait(team, shares, share, rank, round);
    collx_numbered_get(team, collx_share_flag(share, round), &share->more[round & 1], round, rank,
                       "Allreduce", to, bytes);
}

/* Copy what we relay in this round, each when it is there. */
void collx_shares_relay(struct collx_team *team, const struct collx_shares *shares, uint64_t round,
                        size_t bytes);

/* Claim our own share's slot of the next round, for `bytes` bytes, which `copier` has copied. */
static inline void collx_shares_claim(const struct collx_team *team,
                                      const struct collx_shares *shares,
                                      const struct collx_copier *copier, uint64_t round,
                                      size_t bytes)
{
    struct collx_share *own = collx_share_of(shares, team->rank);

    /* We read as much as we write, and both want their lines. */
    if (!collx_copy_claims(copier, 2 * bytes, bytes))
        return;
    if (!copier->returned || bytes <= COLLX_SHARES_PROMPT)
        collx_claim_line(team, &collx_share_flag(own, round + 1)->claimed);
    if (bytes > COLLX_INLINE)
        collx_claim(team, collx_share_data(shares, own, round + 1, bytes), bytes);
}

static inline void collx_shares_claim_numbered(const struct collx_team *team,
                                               const struct collx_shares *shares, uint64_t round,
                                               size_t bytes)
{
    struct collx_share *own = collx_share_of(shares, team->rank);

    round++;
    collx_claim_line(team, &collx_share_flag(own, round)->claimed);
    collx_numbered_claim(team, &own->more[round & 1], bytes);
}

#endif
