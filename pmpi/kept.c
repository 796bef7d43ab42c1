#include "pmpi/kept.h"

#include "algorithms/crowd.h"
#include "base/hash.h"
#include "pmpi/agree.h"
#include "pmpi/history.h"
#include "pmpi/lifetime.h"
#include "pmpi/messages.h"
#include "pmpi/segment.h"
#include "pmpi/select.h"
#include "pmpi/setup_state.h"
#include "pmpi/world.h"

#include <stdlib.h>
#include <string.h>

struct collx_identity {
    uint64_t hash; /* of what follows, but for the rank */
    int rank, size;
    char name[sizeof((struct collx_comm *)NULL)->name];
    int world[]; /* [size]: its ranks in MPI_COMM_WORLD */
};

struct collx_kept {
    struct collx_routes routes;
    struct collx_identity *identity;
    uint64_t calls[COLLX_ROUTED]; /* of its last communicator, to algorithms */
    struct collx_spare spare;     /* once it has been found */
    char label[sizeof((struct collx_comm *)NULL)->label];
};

/* More ranks than a node has: to look them up would take longer than it may be worth. */
enum { RANKS_MOST = 1024 };

static size_t identity_size(int ranks)
{
    return sizeof(struct collx_identity) + (size_t)ranks * sizeof(int);
}

static struct collx_identity *identity_create(struct collx_comm *comm)
{
    struct collx_identity *identity =
        comm->size > RANKS_MOST ? NULL : calloc(1, identity_size(comm->size));

    if (!identity || !collx_agree_has_met(comm) || !collx_world_has(comm, identity->world)) {
        free(identity);
        return NULL;
    }
    identity->rank = comm->rank;
    identity->size = comm->size;
    strcpy(identity->name, comm->name);
    identity->hash = collx_hash(COLLX_HASH_START, identity->name, strlen(identity->name));
    identity->hash = collx_hash(identity->hash, identity->world,
                                (size_t)identity->size * sizeof identity->world[0]);
    return identity;
}

/* That of the communicator, made once and then as long as it has this name. */
static const struct collx_identity *identity_of(struct collx_comm *comm)
{
    if (comm->identity && strcmp(comm->identity->name, comm->name) != 0) {
        free(comm->identity);
        comm->identity = NULL;
    }
    if (!comm->identity)
        comm->identity = identity_create(comm);
    return comm->identity;
}

static bool is_any(const struct collx_spare *spare, const void *context)
{
    (void)context;
    return spare->with;
}

static bool can_be_kept(const struct collx_comm *comm)
{
    const struct collx_routes *routes = &comm->routes;

    /* Where the setup failed, or calls have to be compared, they go another way. */
    for (int kind = 0; kind < COLLX_ROUTED; kind++)
        if (routes->selection[kind] && comm->slot[kind].state != routes->selection[kind])
            return false;
    return routes->segment && routes->facts.nodes == 1 && !routes->names_differ &&
           (!routes->messages.open || routes->messages.ear) && !comm->rma &&
           !collx_process_is_child();
}

/* Whether it was used enough for it to be worth asking MPI who its ranks are.  Of one that was not
 * set up only rank 0 ever wants to know. */
static bool can_be_remembered(const struct collx_comm *comm)
{
    return comm->rank == 0 && !comm->inter && collx_world_has_one_thread() &&
           !collx_process_is_child() &&
           comm->calls >= (collx_history_any() ? COLLX_WARMUP_EARLY : COLLX_WARMUP_AGAIN);
}

void collx_kept_keep(struct collx_comm *comm)
{
    const bool can = can_be_kept(comm);

    if (!can && !can_be_remembered(comm))
        return;
    /* That which it had when it was set up is what the policy went by. */
    if (!comm->routes.team && !comm->identity)
        collx_comm_name(comm);
    const struct collx_identity *identity = identity_of(comm);
    uint64_t calls[COLLX_ROUTED], all = comm->calls;
    for (int kind = 0; kind < COLLX_ROUTED; kind++)
        all += calls[kind] = collx_select_calls(comm, (enum collx_kind)kind);
    if (identity && collx_world_has_one_thread())
        collx_history_freed(identity->hash, all, comm->routes.team, can);
    struct collx_kept *kept = identity && can ? calloc(1, sizeof *kept) : NULL;
    if (!kept)
        return;
    kept->routes = comm->routes;
    kept->identity = comm->identity;
    comm->identity = NULL;
    memcpy(kept->calls, calls, sizeof calls);
    memcpy(kept->label, comm->label, sizeof kept->label);
    collx_segment_keep(&comm->routes, kept);
    comm->routes = (struct collx_routes){.team = NULL};
}

/* What is looked for. */
struct wanted {
    const struct collx_identity *identity;
    uint64_t crowd;
    bool may_send; /* by what ends with MPI_COMM_WORLD: it does not outlive that */
};

static bool is_wanted(const struct collx_spare *spare, const void *context)
{
    const struct wanted *wanted = context;
    const struct collx_kept *kept = spare->with;

    return kept && kept->routes.crowd == wanted->crowd &&
           (wanted->may_send || !kept->routes.messages.open) &&
           kept->identity->size == wanted->identity->size &&
           !memcmp(kept->identity, wanted->identity, identity_size(kept->identity->size));
}

struct collx_kept *collx_kept_find(struct collx_comm *comm)
{
    struct collx_spare spare;

    /* Most programs have none, and need not ask MPI who the ranks are. */
    if (collx_process_is_child() || !collx_segment_find(is_any, NULL, NULL))
        return NULL;
    const struct collx_identity *identity = identity_of(comm);
    if (!identity)
        return NULL;
    const struct wanted wanted = {identity, collx_crowd_own(), collx_messages_can_share()};
    if (!collx_segment_find(is_wanted, &wanted, &spare))
        return NULL;
    struct collx_kept *kept = spare.with;
    kept->spare = spare;
    return kept;
}

bool collx_kept_expects(struct collx_comm *comm)
{
    if (!collx_history_any())
        return false;
    collx_comm_name(comm);
    const struct collx_identity *identity = identity_of(comm);
    return identity && collx_history_expects(identity->hash, comm->calls, comm->due_at);
}

void collx_kept_set_up(struct collx_comm *comm)
{
    if (!collx_world_has_one_thread() || !collx_history_any())
        return;
    const struct collx_identity *identity = identity_of(comm);
    if (identity)
        collx_history_set_up(identity->hash);
}

uint64_t collx_kept_hash(const struct collx_kept *kept)
{
    if (!kept)
        return 0;
    const uint64_t hash =
        collx_hash(COLLX_HASH_START, &kept->spare.cookie, sizeof kept->spare.cookie);
    return collx_hash(hash, kept->calls, sizeof kept->calls);
}

void collx_kept_take(struct collx_kept *kept, struct collx_comm *comm)
{
    struct collx_team *team = kept->routes.team;

    comm->routes = kept->routes;
    collx_spare_return(kept->spare.users, kept->spare.sharers, ++comm->routes.lives);
    memcpy(comm->label, kept->label, sizeof comm->label);
    team->ctx = comm;
    team->name = comm->label;
    /* What was said of the freed one may have to be said again. */
    team->stalled = false;
    if (team->stall_said && __atomic_load_n(team->stall_said, __ATOMIC_RELAXED))
        __atomic_store_n(team->stall_said, 0, __ATOMIC_RELAXED);
    free(kept->identity);
    free(kept);
}

void collx_kept_put_back(struct collx_kept *kept)
{
    if (kept)
        collx_segment_put_back(&kept->spare);
}

void collx_kept_close(struct collx_kept *kept)
{
    if (!kept)
        return;
    collx_setup_detach(&kept->routes);
    collx_messages_close(&kept->routes.messages);
    free(kept->routes.team);
    free(kept->identity);
    free(kept);
}
