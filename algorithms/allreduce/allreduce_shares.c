#include "algorithms/allreduce/allreduce_shares.h"

#include "algorithms/allreduce/allreduce.h"

#include <errno.h>
#include <stdlib.h>

/* Bytes of all ranks together.  The other way takes a trip more, or with more ranks than CPUs a
 * turn of each; but its ranks read only twice as much as one contributes, however many they are. */
enum {
    FEW = 8,
    MOST_OF_FEW = 32768,
    MOST_OF_MANY = 16384,
    /* Of two, neither way has a rank read more than the other.  Where lines are not returned
     * (copy.h) the other way takes long: on an Emerald Rapids 5.0 us for 32 KiB each instead of
     * 3.7, and for 64 KiB they are level. */
    MOST_OF_TWO = 65536,
};
_Static_assert(MOST_OF_FEW / 2 <= (int)COLLX_WORK_LEAST && MOST_OF_TWO / 2 <= COLLX_WORK_MOST,
               "a rank has room to combine them");

size_t collx_shares_most(int ranks, bool returnable)
{
    const size_t together = ranks > FEW                 ? MOST_OF_MANY
                            : ranks == 2 && !returnable ? MOST_OF_TWO
                                                        : MOST_OF_FEW;
    const size_t bytes = together / (size_t)ranks;

    return bytes < COLLX_INLINE ? COLLX_INLINE : bytes;
}

/* There is room for whatever the ranks agree on. */
static size_t stride_for(int ranks)
{
    return sizeof(struct collx_share) + collx_line_up(collx_shares_most(ranks, false));
}

static bool are_swapped(int ranks)
{
    return ranks == 2;
}

static size_t step_for(int ranks, int numa_nodes)
{
    const size_t shares = (size_t)ranks << !are_swapped(ranks);

    return collx_numa_up(shares * stride_for(ranks), numa_nodes);
}

static unsigned char *first_table(void *memory, int numa_nodes)
{
    return (unsigned char *)collx_numa_up((uintptr_t)memory, numa_nodes);
}

/* Flat, the ranks on several NUMA nodes have one table, which is nobody's. */
static int nodes_of(const struct collx_groups_plan *plan, int numa_nodes)
{
    return plan->groups > 1 ? numa_nodes : 1;
}

size_t collx_shares_space(const struct collx_groups_plan *plan, int ranks, int numa_nodes)
{
    const int nodes = nodes_of(plan, numa_nodes);

    return (nodes > 1 ? collx_page_up(1) : 0) + (size_t)plan->groups * step_for(ranks, nodes);
}

void collx_shares_place(const struct collx_groups_plan *plan, const struct collx_team *team,
                        void *memory)
{
    const int nodes = nodes_of(plan, collx_places_numa_nodes(team->places, team->size));
    unsigned char *table = first_table(memory, nodes);

    for (int rank = 0; rank < team->size && nodes > 1; rank++) {
        if (collx_places_first(team->places, rank, plan->key) != rank)
            continue;
        collx_shm_place(table, step_for(team->size, nodes), team->places[rank].numa);
        table += step_for(team->size, nodes);
    }
}

static unsigned char *table_of(const struct collx_shares *shares, int group)
{
    return shares->memory + (size_t)group * shares->step;
}

static void find_relayed(struct collx_shares *shares, const struct collx_team *team)
{
    const struct collx_groups *groups = &shares->groups;
    const int members = groups->members[groups->own], index = groups->index[team->rank];
    int outsider = 0;

    for (int rank = 0; rank < team->size; rank++)
        if (groups->of[rank] != groups->own && collx_allreduce_relays(index, members, outsider++))
            shares->relayed[shares->relays++] =
                (struct collx_relayed){.from = table_of(shares, groups->of[rank]), .rank = rank};
}

int collx_shares_init(struct collx_shares *shares, const struct collx_groups_plan *plan,
                      const struct collx_team *team, void *memory)
{
    const int nodes = nodes_of(plan, collx_places_numa_nodes(team->places, team->size));

    *shares = (struct collx_shares){
        .plan = *plan,
        .memory = first_table(memory, nodes),
        .stride = stride_for(team->size),
        .step = step_for(team->size, nodes),
        .swapped = are_swapped(team->size),
    };
    shares->relayed = calloc((size_t)team->size, sizeof *shares->relayed);
    if (collx_groups_init(&shares->groups, plan, team) || !shares->relayed)
        return -ENOMEM;
    shares->table = table_of(shares, shares->groups.own);
    find_relayed(shares, team);
    return 0;
}

void collx_shares_finish(struct collx_shares *shares)
{
    collx_groups_finish(&shares->groups);
    free(shares->relayed);
}

/* What a rank waits for, in words for a message. */
struct waiting {
    const struct collx_shares *shares;
    uint64_t round;
    int rank, ranks;
};

/* Relaxed: it orders nothing, and what is a moment too old makes nobody wait. */
static bool posted(const struct waiting *waiting, int group, int rank)
{
    const struct collx_shares *shares = waiting->shares;
    const struct collx_share *share =
        collx_share_in(shares, table_of(shares, group), rank, waiting->round);

    return atomic_load_explicit(&share->flag.value, memory_order_relaxed) >= waiting->round;
}

/* Who has not come; and when all have, the relay that has not passed on what we wait for. */
static bool is_missing(const void *with, int rank)
{
    const struct waiting *waiting = with;
    const struct collx_groups *groups = &waiting->shares->groups;
    int outsiders = 0;

    for (int other = 0; other < waiting->ranks; other++)
        if (!posted(waiting, groups->of[other], other))
            return !posted(waiting, groups->of[rank], rank);
    if (groups->of[rank] != groups->own || groups->of[waiting->rank] == groups->own)
        return false;
    for (int other = 0; other < waiting->rank; other++)
        outsiders += groups->of[other] != groups->own;
    return collx_allreduce_relays(groups->index[rank], groups->members[groups->own], outsiders);
}

void collx_shares_wait_long(struct collx_team *team, const struct collx_shares *shares,
                            struct collx_share *share, int rank, uint64_t round)
{
    struct waiting waiting = {shares, round, rank, team->size};

    collx_wait_long(team,
                    &(struct collx_wait){.flag = &share->flag,
                                         .count = 1,
                                         .what = "Allreduce",
                                         .missing = is_missing,
                                         .with = &waiting},
                    round);
}

void collx_shares_relay(struct collx_team *team, const struct collx_shares *shares, uint64_t round,
                        size_t bytes)
{
    for (int i = 0; i < shares->relays; i++) {
        const struct collx_relayed *relayed = &shares->relayed[i];
        struct collx_share *from = collx_share_in(shares, relayed->from, relayed->rank, round);
        struct collx_share *to = collx_share_of(shares, relayed->rank, round);
        collx_shares_wait(team, shares, from, relayed->rank, round);
        memcpy(collx_share_data(to, bytes), collx_share_data(from, bytes), bytes);
        collx_flag_post(team, &to->flag, round);
    }
}
