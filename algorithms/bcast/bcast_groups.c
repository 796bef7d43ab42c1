#include "algorithms/bcast/bcast_groups.h"

#include <stdlib.h>

/* Of COLLX_SMALL_BYTES. */
enum { SMALL_SLOTS = 16 };
_Static_assert((int)SMALL_SLOTS <= (int)COLLX_SMALL_SLOTS, "collx_ring.used has one for each");

static size_t rings_space(int members)
{
    return collx_ring_space(members, SMALL_SLOTS, COLLX_SMALL_BYTES, false) +
           collx_ring_space(members, COLLX_LARGE_SLOTS, COLLX_LARGE_BYTES, false);
}

size_t collx_grouped_space(const struct collx_groups_plan *plan, const struct collx_facts *facts)
{
    size_t space = rings_space(facts->ranks) + (size_t)(plan->groups - 1) * rings_space(0);

    /* Each group's rings begin on a page. */
    return facts->numa_nodes > 1 ? space + (size_t)plan->groups * collx_page_up(1) : space;
}

static int members_of(const struct collx_team *team, int first, enum collx_place_key key)
{
    int members = 1;

    for (int rank = first + 1; rank < team->size; rank++)
        members += collx_place_shared(&team->places[first], &team->places[rank], key);
    return members;
}

/* Where the rings of each group are: for small[group], large[group], unless they are NULL; or they
 * are placed.  Returns what follows. */
static void *lay_out(const struct collx_groups_plan *plan, const struct collx_team *team,
                     void *memory, struct collx_ring *small, struct collx_ring *large)
{
    const int numa_nodes = collx_places_numa_nodes(team->places, team->size);
    uintptr_t next = (uintptr_t)memory;

    for (int rank = 0, group = 0; rank < team->size; rank++) {
        if (collx_places_first(team->places, rank, plan->key) != rank)
            continue;
        const int members = members_of(team, rank, plan->key);
        uintptr_t begin = next = collx_numa_up(next, numa_nodes);
        next += rings_space(members);
        if (small) {
            void *second = collx_ring_init(&small[group], (void *)begin, members, SMALL_SLOTS,
                                           COLLX_SMALL_BYTES, false);
            collx_ring_init(&large[group], second, members, COLLX_LARGE_SLOTS, COLLX_LARGE_BYTES,
                            false);
        } else {
            collx_shm_place((void *)begin, collx_page_up(next) - begin, team->places[rank].numa);
        }
        group++;
    }
    return (void *)next;
}

void collx_grouped_place(const struct collx_groups_plan *plan, const struct collx_team *team,
                         void *memory)
{
    lay_out(plan, team, memory, NULL, NULL);
}

void *collx_grouped_init(struct collx_grouped *grouped, const struct collx_groups_plan *plan,
                         struct collx_team *team, void *memory)
{
    struct collx_ring *small = calloc((size_t)plan->groups, sizeof *small);
    struct collx_ring *large = calloc((size_t)plan->groups, sizeof *large);

    grouped->small =
        (struct collx_group_rings){.team = team, .groups = &grouped->groups, .ring = small};
    grouped->large =
        (struct collx_group_rings){.team = team, .groups = &grouped->groups, .ring = large};
    if (collx_groups_init(&grouped->groups, plan, team) || !small || !large)
        return NULL;
    return lay_out(plan, team, memory, small, large);
}

void collx_grouped_finish(struct collx_grouped *grouped)
{
    collx_groups_finish(&grouped->groups);
    free(grouped->small.ring);
    free(grouped->large.ring);
}

/* What a rank waits for, in words for a message. */
struct waiting {
    const struct collx_group_rings *rings;
    uint64_t e;
    int root;
};

/* Relaxed: it orders nothing, and what is a moment too old makes nobody wait. */
static uint64_t relaxed(const struct collx_flag *flag)
{
    return atomic_load_explicit(&flag->value, memory_order_relaxed);
}

static const struct collx_flag *done_of(const struct collx_group_rings *rings, int rank)
{
    const struct collx_groups *groups = rings->groups;

    return &rings->ring[groups->of[rank]].done[groups->index[rank]];
}

/* Most ranks wait for one that waits itself.  Where somebody is a whole ring behind, all wait for
 * whoever is behind most; else for the root, or the leader that has not passed on what it has. */
static bool is_missing(const void *with, int rank)
{
    const struct waiting *waiting = with;
    const struct collx_group_rings *rings = waiting->rings;
    const struct collx_groups *groups = rings->groups;
    const struct collx_ring *home = &rings->ring[groups->of[waiting->root]];
    uint64_t least = UINT64_MAX;

    for (int other = 0; other < rings->team->size; other++) {
        uint64_t done = relaxed(done_of(rings, other));
        least = done < least ? done : least;
    }
    if (least + home->slots < waiting->e)
        return relaxed(done_of(rings, rank)) == least;
    if (relaxed(&home->slot[collx_ring_slot(home, waiting->e)]) < waiting->e)
        return rank == waiting->root;
    const int leader = groups->first[groups->own]; /* who is one itself has just been served */
    return rank == leader && leader != rings->team->rank;
}

static void wait_for(struct waiting *waiting, struct collx_flag *flag, uint64_t value)
{
    struct collx_team *team = waiting->rings->team;

    if (!collx_spin_for(team, flag, value))
        collx_wait_long(
            team,
            &(struct collx_wait){
                .flag = flag, .count = 1, .what = "Bcast", .missing = is_missing, .with = waiting},
            value);
}

/* 2. */
static void make_room(const struct collx_group_rings *rings, struct waiting *waiting)
{
    const struct collx_groups *groups = rings->groups;
    struct collx_ring *own = collx_group_ring_own(rings);
    const int members = groups->members[groups->own], me = groups->index[rings->team->rank];
    const bool guests = rings->guests > own->all_done;

    if (waiting->e <= own->all_done + own->slots)
        return;
    const uint64_t need = waiting->e - own->slots;
    for (int i = 0; i < members; i++)
        if (i != me)
            wait_for(waiting, &own->done[i], need);
    uint64_t least = collx_ring_done(own, members);
    for (int group = 0; guests && group < groups->count; group++) {
        if (group == groups->own)
            continue;
        wait_for(waiting, &rings->ring[group].done[0], need);
        uint64_t done = collx_ring_done(&rings->ring[group], 1);
        least = done < least ? done : least;
    }
    own->all_done = least;
}

static void pass_chunk(struct collx_group_rings *rings, int root, void *buf, size_t bytes)
{
    struct collx_team *team = rings->team;
    const struct collx_groups *groups = rings->groups;
    struct collx_ring *own = collx_group_ring_own(rings);
    const int home = groups->of[root], me = groups->index[team->rank];
    const uint64_t e = ++own->chunk;
    struct waiting waiting = {rings, e, root};
    const void *source = buf;
    bool writes = team->rank == root;

    if (team->rank != root) { /* 1 */
        const bool leads = home != groups->own && me == 0;
        const struct collx_ring *from = leads ? &rings->ring[home] : own;
        wait_for(&waiting, &from->slot[collx_ring_slot(from, e)], e);
        collx_ring_get(from, collx_ring_slot(from, e), buf, bytes, &own->copier);
        writes = leads && groups->members[groups->own] > 1;
        /* From where it is in a cache. */
        if (!buf || collx_copy_out_is_past(&own->copier))
            source = collx_ring_at(from, collx_ring_slot(from, e), bytes);
    }
    if (writes) {
        make_room(rings, &waiting);
        collx_ring_put(team, own, e, collx_ring_slot(own, e), source, bytes, false); /* 3 */
    }
    if (home == groups->own)
        rings->guests = e;
    collx_flag_post(team, &own->done[me], e); /* 4 */
}

void collx_group_rings_pass(struct collx_group_rings *rings, int root, char *buf, size_t bytes)
{
    const size_t each = collx_ring_chunk(collx_group_ring_own(rings), bytes);

    for (size_t at = 0; at < bytes; at += each)
        pass_chunk(rings, root, buf ? buf + at : NULL, bytes - at < each ? bytes - at : each);
}
