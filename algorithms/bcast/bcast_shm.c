/* Bcast through rings in shared memory: one for small messages and one, with larger slots, through
 * which long messages go in chunks (bcast_ring.h).  Many ranks that sit in several caches or
 * packages have such rings for each of these, where that is cheaper (bcast_groups.h).
 *
 * Long messages may leave the ring past the receivers' caches, or go without rings, where the
 * kernel allows it: bcast_single.c.  The calls find out for each size what is fastest
 * (long_ways.h).
 */
#include "algorithms/bcast/bcast.h"
#include "algorithms/bcast/bcast_groups.h"
#include "algorithms/within/long_ways.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

struct bcast {
    struct collx_team *team;
    struct collx_groups_plan plan;
    struct collx_ring small, large; /* flat */
    struct collx_grouped grouped;   /* or in groups */
    struct collx_long_ways ways;
};

/* What runs a call is compiled twice, `grouped` and not, so that being flat costs no look at what
 * else could be. */
#define FOR_BOTH static inline __attribute__((always_inline))

/* One message, through the ring for small messages or the one for large ones; from or to nowhere
 * where `buf` is NULL. */
FOR_BOTH void pass(struct bcast *bcast, bool grouped, bool large, int root, char *buf, size_t bytes)
{
    if (grouped)
        collx_group_rings_pass(large ? &bcast->grouped.large : &bcast->grouped.small, root, buf,
                               bytes);
    else
        collx_ring_pass(bcast->team, large ? &bcast->large : &bcast->small, root, buf, bytes);
}

static struct collx_copier *copier_of_long(struct bcast *bcast)
{
    struct collx_ring *ring =
        bcast->plan.groups > 1 ? collx_group_ring_own(&bcast->grouped.large) : &bcast->large;

    return &ring->copier;
}

/* Not inline: short messages have no use for it. */
static __attribute__((noinline)) int run_long(struct bcast *bcast, bool grouped, int root,
                                              void *buf, size_t bytes)
{
    int error = 0;

    if (bytes < collx_long_ways_least(&bcast->ways)) {
        pass(bcast, grouped, true, root, buf, bytes);
        return 0;
    }
    switch (collx_long_ways_begin(&bcast->ways, bytes)) {
    case COLLX_WAY_SEGMENT:
        pass(bcast, grouped, true, root, buf, bytes);
        break;
    case COLLX_WAY_PAST:
        collx_copy_out_past(copier_of_long(bcast));
        pass(bcast, grouped, true, root, buf, bytes);
        collx_copy_out_past_end(copier_of_long(bcast));
        break;
    case COLLX_WAY_SINGLE:
        error = collx_bcast_single(&bcast->ways.single, root, buf, bytes, false);
        break;
    case COLLX_WAY_SINGLE_OTHER:
        error = collx_bcast_single(&bcast->ways.single, root, buf, bytes, true);
    }
    collx_long_ways_end(&bcast->ways);
    return error;
}

static int single_packed(void *state, int root, void *buf, size_t bytes)
{
    return collx_bcast_single(&((struct bcast *)state)->ways.single, root, buf, bytes, false);
}

static int single_packed_helped(void *state, int root, void *buf, size_t bytes)
{
    return collx_bcast_single(&((struct bcast *)state)->ways.single, root, buf, bytes, true);
}

/* Elements with gaps: through the ring chunk by chunk, else packed as a whole. */
static int run_long_gapped(struct bcast *bcast, struct collx_call *call)
{
    const bool tuned = call->bytes >= collx_long_ways_least(&bcast->ways);
    const unsigned way =
        tuned ? collx_long_ways_begin(&bcast->ways, call->bytes) : COLLX_WAY_SEGMENT;
    int error;

    if (way == COLLX_WAY_SEGMENT || way == COLLX_WAY_PAST)
        error = collx_ring_pass_gapped(bcast->team, &bcast->large, call->root, call->layout,
                                       call->rbuf, call->bytes);
    else
        error = collx_bcast_packed(bcast->team, call,
                                   way == COLLX_WAY_SINGLE ? single_packed : single_packed_helped,
                                   bcast);
    if (tuned)
        collx_long_ways_end(&bcast->ways);
    return error;
}

/* `buf`: as of a collx_bcast_bytes_fn; NULL only if the message is not a short one. */
_Static_assert((int)COLLX_SMALL_BYTES <= (int)COLLX_BCAST_BOUNCE,
               "there is always memory for those");
FOR_BOTH int run_bytes(struct bcast *bcast, bool grouped, int root, void *buf, size_t bytes)
{
    /* Compiled for each kind alone: beside the flag of a slot, in one slot, and in several. */
    if (bytes <= COLLX_INLINE)
        pass(bcast, grouped, false, root, buf, bytes);
    else if (bytes <= COLLX_SHORT)
        pass(bcast, grouped, false, root, buf, bytes);
    else if (bytes <= COLLX_SMALL_BYTES)
        pass(bcast, grouped, false, root, buf, bytes);
    else
        return run_long(bcast, grouped, root, buf, bytes);
    return 0;
}

static int packed_flat(void *state, int root, void *buf, size_t bytes)
{
    return run_bytes(state, false, root, buf, bytes);
}

static int packed_grouped(void *state, int root, void *buf, size_t bytes)
{
    return run_bytes(state, true, root, buf, bytes);
}

FOR_BOTH int run(struct bcast *bcast, bool grouped, struct collx_call *call)
{
    if (call->bytes == 0)
        return 0;
    if (!call->contiguous && call->layout && !grouped && call->bytes > COLLX_SMALL_BYTES)
        return run_long_gapped(bcast, call);
    if (!call->contiguous)
        return collx_bcast_packed(bcast->team, call, grouped ? packed_grouped : packed_flat, bcast);
    return run_bytes(bcast, grouped, call->root, call->rbuf, call->bytes);
}

static int run_flat(struct collx_slot *slot, struct collx_call *call)
{
    return run(slot->state, false, call);
}

static int run_grouped(struct collx_slot *slot, struct collx_call *call)
{
    return run(slot->state, true, call);
}

static int run_alone(struct collx_slot *slot, struct collx_call *call)
{
    (void)slot, (void)call;
    return 0;
}

/* Parameters. */
enum { SINGLE_COPY, GROUPS, PAST_CACHES };
static const struct collx_param params[] = {
    COLLX_SINGLE_PARAM,
    COLLX_GROUPS_PARAM(
        "9 ranks and more in several caches or packages pass messages on in each of them"),
    COLLX_PAST_PARAM,
    {0},
};

static struct collx_groups_plan plan_of(const struct collx_place *places, int ranks,
                                        const struct collx_args *args)
{
    return collx_bcast_plan_choose(places, ranks, (enum collx_groups_wanted)args->value[GROUPS]);
}

static size_t collx_bcast_shm_space(const struct collx_facts *facts, const struct collx_args *args)
{
    const struct collx_groups_plan plan = plan_of(facts->places, facts->ranks, args);

    if (facts->ranks == 1)
        return 0;
    size_t rings =
        plan.groups > 1
            ? collx_grouped_space(&plan, facts)
            : COLLX_LINE +
                  collx_ring_space(facts->ranks, COLLX_SMALL_SLOTS, COLLX_SMALL_SLOT, true) +
                  collx_ring_space(facts->ranks, COLLX_LARGE_SLOTS, COLLX_LARGE_BYTES, false);
    return rings + collx_long_ways_space(facts->ranks);
}

static void collx_bcast_shm_clear(const struct collx_facts *facts, const struct collx_args *args,
                                  void *memory)
{
    const struct collx_groups_plan plan = plan_of(facts->places, facts->ranks, args);

    if (plan.groups > 1) {
        memset(memory, 0, collx_bcast_shm_space(facts, args));
        return;
    }
    memset(memory, 0, COLLX_LINE);
    void *large = collx_ring_clear((char *)memory + COLLX_LINE, facts->ranks, COLLX_SMALL_SLOTS,
                                   COLLX_SMALL_SLOT, true);
    void *behind =
        collx_ring_clear(large, facts->ranks, COLLX_LARGE_SLOTS, COLLX_LARGE_BYTES, false);
    memset(behind, 0, collx_long_ways_space(facts->ranks));
}

static void collx_bcast_shm_place(const struct collx_team *team, const struct collx_args *args,
                                  void *memory)
{
    const struct collx_groups_plan plan = plan_of(team->places, team->size, args);

    if (plan.groups > 1)
        collx_grouped_place(&plan, team, memory);
}

/* Root and leaves may cut the same bytes into elements of different size, so only the bytes may
 * decide.  MPI_Pack counts them in int. */
static bool collx_bcast_shm_takes(const void *state, const struct collx_call *call)
{
    (void)state;
    return call->bytes <= INT_MAX;
}

static const struct collx_way list[] = {
    COLLX_SEGMENT_WAYS,
    {.say = "from the root's buffer", .uncrowded = true},
    {.say = "from the root's buffer, with help"},
    {.say = NULL},
};

static void collx_bcast_shm_detach(void *state)
{
    struct bcast *bcast = state;

    collx_grouped_finish(&bcast->grouped);
    free(bcast);
}

/* The rings of a team.  Returns what follows them in memory; NULL: there is none for them. */
static void *rings_init(struct bcast *bcast, void *memory)
{
    const int ranks = bcast->team->size;

    if (bcast->plan.groups > 1)
        return collx_grouped_init(&bcast->grouped, &bcast->plan, bcast->team, memory);
    void *large = collx_ring_init(&bcast->small, (char *)memory + COLLX_LINE, ranks,
                                  COLLX_SMALL_SLOTS, COLLX_SMALL_SLOT, true);
    void *behind =
        collx_ring_init(&bcast->large, large, ranks, COLLX_LARGE_SLOTS, COLLX_LARGE_BYTES, false);
    const uint32_t agreed = collx_shm_agree(memory, &bcast->small.copier.ways);
    bcast->small.swings = bcast->large.swings = ranks == 2 && agreed & COLLX_SHM_SWINGS;
    if (agreed & COLLX_SHM_WHOLE_LINES)
        bcast->large.most = COLLX_WHOLE_BYTES;
    bcast->large.longest = COLLX_LONGEST * bcast->large.most;
    return behind;
}

/* What the ranks of a team share. */
static int prepare(struct bcast *bcast, const struct collx_args *args, void *memory)
{
    void *behind = rings_init(bcast, memory);

    if (!behind)
        return -ENOMEM;
    collx_long_ways_init(&bcast->ways, bcast->team, memory, behind,
                         &(struct collx_long_ways_setup){.list = list,
                                                         .name = "Bcast",
                                                         .wanted = args->value[SINGLE_COPY],
                                                         .past = args->value[PAST_CACHES]});
    return 0;
}

static int collx_bcast_shm_attach(struct collx_team *team, const struct collx_args *args,
                                  void *memory, struct collx_slot *slot)
{
    struct bcast *bcast = calloc(1, sizeof *bcast);

    if (!bcast)
        return -ENOMEM;
    bcast->team = team;
    bcast->plan = plan_of(team->places, team->size, args);
    /* One alone has no memory. */
    int error = team->size > 1 ? prepare(bcast, args, memory) : 0;
    if (error) {
        collx_bcast_shm_detach(bcast);
        return error;
    }
    slot->state = bcast;
    slot->run = team->size == 1 ? run_alone : bcast->plan.groups > 1 ? run_grouped : run_flat;
    return 0;
}

static void collx_bcast_shm_describe(const void *state, char *line, size_t size)
{
    collx_bcast_plan_describe(&((const struct bcast *)state)->plan, line, size);
}

const struct collx_algorithm collx_bcast_shm = {
    .name = "shm",
    .help = "rings in shared memory; long messages are pipelined through them",
    .needs = "all ranks on one node; messages up to 2 GiB",
    .kind = COLLX_BCAST,
    .params = params,
    .query = collx_query_one_node,
    .space = collx_bcast_shm_space,
    .place = collx_bcast_shm_place,
    .clear = collx_bcast_shm_clear,
    .attach = collx_bcast_shm_attach,
    .takes = collx_bcast_shm_takes,
    .describe = collx_bcast_shm_describe,
    .detach = collx_bcast_shm_detach,
};
