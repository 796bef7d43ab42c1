/* Setting a communicator up: one agreement, by collectives of the MPI library itself, after a call
 * that all ranks have made.
 *
 *   1. Everybody tells whether it can take part (it has the memory for all that follows, and the
 *      same collx as the others).  If anybody cannot, nobody goes on.  Where all have the same
 *      routes still from a communicator that has been freed they take those, and go on with 6.
 *      Where only some have, or others, they say so, and everybody tells again.
 *   2. Everybody hears which nodes the ranks are on, and where on them; rank 0 hands over its
 *      policy, unless that is the built-in one, and its name for the communicator, unless all have
 *      the same.
 *   3. Everybody plans, by itself: the same policy, facts and name give the same plan.
 *   4. The leader of each node makes the segment that the plan's algorithms need there, if they
 *      need one, and everybody maps it; or it takes one that all have still from before, as they
 *      have told in 2 (hw/spares.h).  Everybody attaches the algorithms.
 *   5. Everybody hears what went wrong anywhere: an algorithm that could not be attached everywhere
 *      is refused everywhere, and all go back to 3, without it.  Where a limit of ours was in the
 *      way of the segment, that is the one which needs most of it; where something else was, all
 *      that need one.  Nothing is refused where a rank has not got what its leader found from
 *      before any more: they make a new one.  If nothing went wrong, algorithms that have to do
 *      something together do it, and everybody hears again.
 *   6. The slots are filled, which cannot fail.
 *
 * So the ranks go through the same collectives, and afterwards all decide alike.  What needs no
 * other rank is in setup_plan.c: 3, and what is refused in 5; what 4 and 5 do with algorithms and
 * their memory is in setup_attach.c.
 */
#include "pmpi/comm.h"

#include "algorithms/crowd.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/options.h"
#include "pmpi/agree.h"
#include "pmpi/calls.h"
#include "pmpi/check.h"
#include "pmpi/gpu.h"
#include "pmpi/kept.h"
#include "pmpi/lend.h"
#include "pmpi/lifetime.h"
#include "pmpi/policy.h"
#include "pmpi/progress.h"
#include "pmpi/rma.h"
#include "pmpi/segment.h"
#include "pmpi/select.h"
#include "pmpi/setup_state.h"
#include "pmpi/where.h"
#include "pmpi/world.h"
#include "trace/recorder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What each rank says in step 1; all are combined by bitwise or.  A value that must be the same on
 * all ranks goes in as it is and as its complement: it was, if each bit is set in one of them only.
 */
struct hello {
    uint64_t flags;
    uint64_t collx[2]; /* hash of everything that two collx must have in common */
    /* Hash of what may be another one on each rank: the communicator's name, and the routes that
     * have been kept for it. */
    uint64_t own[2];
    uint64_t policy_size; /* from rank 0: bytes of the policy that it hands over; 0: the built-in */
};
/* In flags: somebody cannot take part; somebody wants all to compare what they call; somebody's job
 * shall survive the loss of ranks. */
enum { HELLO_CANNOT = 1, HELLO_CHECKS = 2, HELLO_SURVIVES = 4 };
enum { HELLO_WORDS = sizeof(struct hello) / sizeof(uint64_t) };
/* Ranks with another version of collx have to be told so, and make the same call then. */
_Static_assert(HELLO_WORDS == 6 && HELLO_WORDS <= (int)COLLX_AGREE_WORDS,
               "it travels as numbers, of which there are as many for ever");

/* 1.  `setup` and `kept` are NULL where this rank cannot take part; it still says so.  0;
 * COLLX_EUNFIT, on all ranks, where they do not go on; or an MPI error. */
static int say_hello(struct collx_comm *comm, const struct collx_setup *setup,
                     const struct collx_kept *kept, struct hello *hello)
{
    const uint64_t version = collx_policy_version(), found = collx_kept_hash(kept);
    uint64_t own = collx_hash(COLLX_HASH_START, comm->name, strlen(comm->name));

    own = collx_hash(own, &found, sizeof found);
    *hello = (struct hello){
        .flags = setup || kept ? 0 : HELLO_CANNOT,
        .collx = {version, ~version},
        .own = {own, ~own},
    };
    if (collx_option_number(COLLX_OPTION_CHECK))
        hello->flags |= HELLO_CHECKS;
    if (collx_world_survives())
        hello->flags |= HELLO_SURVIVES;
    if (setup && comm->rank == 0)
        hello->policy_size = collx_policy_bytes(setup->policy);

    int error = collx_agree_any(comm, (uint64_t *)hello, HELLO_WORDS);
    if (error)
        return error;
    if (hello->collx[0] & hello->collx[1]) {
        collx_setup_report_failed(comm, "run different versions of collx. Use one installation for "
                                        "all");
        return COLLX_EUNFIT;
    }
    if (hello->flags & HELLO_SURVIVES)
        collx_setup_report_failed(comm, COLLX_WHY_SURVIVES);
    return hello->flags & (HELLO_CANNOT | HELLO_SURVIVES) ? COLLX_EUNFIT : 0;
}

/* What may be another one on each rank is the same on all. */
static bool is_common(const struct hello *hello)
{
    return !(hello->own[0] & hello->own[1]);
}

static void find_own_node(struct collx_comm *comm)
{
    const int *node = comm->routes.facts.node;

    comm->routes.leader = 0;
    while (node[comm->routes.leader] != node[comm->rank])
        comm->routes.leader++;
    comm->routes.node_ranks = 0;
    for (int rank = comm->routes.leader; rank < comm->size; rank++)
        comm->routes.node_ranks += node[rank] == node[comm->rank];
}

/* 2. */
static int exchange(struct collx_setup *setup, const struct hello *hello)
{
    struct collx_comm *comm = setup->comm;
    struct collx_where own = collx_where_own(comm);

    collx_segments_tell(own.spare);
    int error = collx_agree_from_all(comm, &own, setup->where, sizeof own);
    if (error)
        return error;
    collx_where_facts(setup->where, comm->size, &comm->routes.facts, setup->places, setup->members,
                      setup->node);
    comm->routes.team->places = comm->routes.facts.places;
    comm->routes.team->node = comm->routes.facts.node;
    find_own_node(comm);
    error = collx_policy_hand_over(comm, hello->policy_size, &setup->policy, &setup->received);
    comm->routes.names_differ = !is_common(hello);
    if (!error && comm->routes.names_differ)
        error = collx_agree_from_zero(comm, comm->name, sizeof comm->name);
    return error;
}

/* 3 to 5, once.  *again is the same on all ranks.  0 or an MPI error. */
static int try_plan(struct collx_setup *setup, bool *again)
{
    struct collx_comm *comm = setup->comm;
    uint64_t before = setup->refused.algorithms;
    int failed = 0;

    *again = false;
    size_t size = collx_setup_plan(setup);
    if (!setup->wanted_count)
        return 0;
    int error = size ? collx_setup_map(setup, size, &failed) : 0;
    if (error) {
        collx_segment_opened(comm);
        return error;
    }
    collx_setup_attach(setup);

    uint64_t words[2] = {setup->refused.algorithms, collx_setup_limit(failed)};
    error = collx_agree_any(comm, words, 2);
    setup->refused.algorithms = words[0];
    collx_segment_opened(comm);
    const uint64_t errors = words[1] & ~COLLX_LIMIT_GONE;
    if (!error && errors) {
        collx_setup_report_unshared(comm, size, errors);
        collx_setup_refuse(setup, errors);
    }
    *again = setup->refused.algorithms != before || words[1] & COLLX_LIMIT_GONE;
    if (!error && !*again)
        error = collx_setup_connect(setup, again);
    if (*again) {
        collx_setup_detach(&comm->routes);
        collx_rma_close(comm);
        collx_segment_close(comm);
    }
    return error;
}

/* 2 to 5.  0, or why nothing comes of it, which is the same on all ranks. */
static int agree(struct collx_setup *setup, const struct hello *hello)
{
    bool again = true;
    int error = exchange(setup, hello);

    while (!error && again) {
        error = try_plan(setup, &again);
        if (setup->refused.algorithms & COLLX_REFUSED_ALL)
            return COLLX_EUNFIT;
    }
    return error;
}

static void setup_destroy(struct collx_setup *setup)
{
    if (!setup)
        return;
    free(setup->where);
    free(setup->places);
    free(setup->members);
    free(setup->node);
    free(setup->addresses);
    free(setup);
}

/* With the team of the routes that it makes. */
static struct collx_setup *setup_create(struct collx_comm *comm)
{
    struct collx_setup *setup = calloc(1, sizeof *setup);

    if (!setup)
        return NULL;
    comm->routes.team = calloc(1, sizeof *comm->routes.team);
    setup->where = calloc((size_t)comm->size, sizeof *setup->where);
    setup->places = calloc((size_t)comm->size, sizeof *setup->places);
    setup->members = calloc((size_t)comm->size, sizeof *setup->members);
    setup->node = calloc((size_t)comm->size, sizeof *setup->node);
    setup->addresses = calloc((size_t)comm->size, sizeof *setup->addresses);
    if (!comm->routes.team || !setup->where || !setup->places || !setup->members || !setup->node ||
        !setup->addresses || collx_self_init(comm->comm)) {
        setup_destroy(setup);
        return NULL;
    }
    *comm->routes.team = (struct collx_team){
        .rank = comm->rank,
        .size = comm->size,
        .ops = &collx_lent,
        .ctx = comm,
        .name = comm->label,
    };
    setup->comm = comm;
    setup->policy = comm->rank == 0 ? collx_policy_own() : collx_policy_builtin();
    return setup;
}

/* 6.  `error`: nothing comes of it. */
static void fill_slots(struct collx_comm *comm, int error)
{
    if (error) {
        collx_calls_all_to_mpi(comm, COLLX_REASON_SETUP_FAILED);
        collx_setup_report_failed(comm, "could not agree on their routes. Most likely one of them "
                                        "has no memory left, or no communicator");
        return;
    }
    for (int kind = 0; kind < COLLX_ROUTED; kind++)
        collx_select_install(comm, (enum collx_kind)kind);
}

/* After 2 to 5, with the result of those. */
static void conclude(struct collx_comm *comm, const struct collx_setup *setup, int error)
{
    if (!error) {
        collx_crowd_decide(comm->routes.segment, comm->routes.node_ranks, comm->routes.team);
        comm->routes.crowd = collx_crowd_own();
        collx_gpu_init();
    }
    fill_slots(comm, error);
    if (!error)
        collx_setup_report_unordered(comm, setup);
    if (!error && comm->rank == 0 && collx_option_number(COLLX_OPTION_VERBOSE) > 0)
        collx_setup_explain(setup);
    comm->routes.facts.places = NULL;
    comm->routes.facts.node = NULL;
    if (comm->routes.team)
        comm->routes.team->places = NULL, comm->routes.team->node = NULL;
}

/* 1, then, if all have the same routes from a freed communicator, 6. */
static void take_kept(struct collx_comm *comm, struct collx_kept *kept)
{
    collx_kept_take(kept, comm);
    fill_slots(comm, 0);
    if (comm->rank == 0 && collx_option_number(COLLX_OPTION_VERBOSE) > 0)
        collx_warn(
            "the collectives of %s go the ways of one that has been freed, of the same ranks",
            comm->label);
}

bool collx_comm_is_due(struct collx_comm *comm, bool due, bool met)
{
    int keep = errno;
    uint64_t word = due;
    int error =
        met ? pmpi.Bcast(&word, 1, MPI_UINT64_T, 0, comm->comm) : collx_agree_any(comm, &word, 1);

    errno = keep;
    /* Where MPI has failed others may know nothing of it, and would not be met in a setup. */
    return !error && word;
}

bool collx_comm_is_barred(struct collx_comm *comm)
{
    if (collx_option_number(COLLX_OPTION_OTHER_JOBS) || !collx_world_lacks(comm))
        return false;
    collx_calls_all_to_mpi(comm, COLLX_REASON_OTHER_JOBS);
    if (comm->rank == 0 && (collx_policy_orders(collx_policy_own()) ||
                            collx_option_number(COLLX_OPTION_VERBOSE) > 0)) {
        collx_comm_name(comm);
        collx_setup_report_failed(comm, "are of several jobs, which need not all run under collx. "
                                        "COLLX_OTHER_JOBS=on in all of them says that they do");
    }
    return true;
}

void collx_comm_setup(struct collx_comm *comm)
{
    int keep = errno;
    struct hello hello;

    collx_process_keep();
    collx_comm_name(comm);
    struct collx_kept *kept = collx_kept_find(comm);
    struct collx_setup *setup = kept ? NULL : setup_create(comm);
    int error = say_hello(comm, setup, kept, &hello);
    collx_kept_set_up(comm);
    if (!error && kept && is_common(&hello)) {
        take_kept(comm, kept);
        errno = keep;
        return;
    }
    collx_kept_put_back(kept);
    collx_comm_label(comm);
    if (!error && !is_common(&hello)) {
        if (kept)
            setup = setup_create(comm);
        error = say_hello(comm, setup, NULL, &hello);
    }
    if (!error)
        error = agree(setup, &hello);
    conclude(comm, setup, error);
    if (!error && hello.flags & HELLO_CHECKS)
        collx_check_install(comm);
    setup_destroy(setup);
    errno = keep;
}

void collx_comm_teardown(struct collx_comm *comm)
{
    if (!comm->routes.team || collx_process_is_child())
        return;
    collx_check_finish(comm);
    collx_setup_detach(&comm->routes);
    collx_rma_close(comm);
    collx_segment_keep(&comm->routes, NULL);
    free(comm->routes.team);
    comm->routes.team = NULL;
}
