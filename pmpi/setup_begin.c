/* What the ranks of MPI_COMM_WORLD tell each other in MPI_Init, in three words: when communicators
 * are set up, and which of them never are.  And rank 0 hands over its policy.
 */
#include "pmpi/setup_state.h"

#include "algorithms/crowd.h"
#include "base/job.h"
#include "base/launcher.h"
#include "base/options.h"
#include "pmpi/agree.h"
#include "pmpi/lifetime.h"
#include "pmpi/messages.h"
#include "pmpi/policy.h"
#include "pmpi/warmup.h"
#include "pmpi/world.h"

#include <string.h>

/* The first word, as all are combined by bitwise or. */
#define CALLS 0x1fffu /* from rank 0: see collx_warmup_set() */
/* From each rank: how many its node has; together that is as many as any has, or more.  All ones:
 * nobody is to go by it. */
#define NODE_SHIFT 13
#define NODE 0x7fffu
#define SURVIVES (1u << 28) /* the job shall survive the loss of ranks */
#define TRACES (1u << 29)   /* somebody traces */
#define SENDS (1u << 30)    /* messages may be needed */
#define SESSIONS (1u << 31) /* somebody has a session open */
#define POLICY_SHIFT 32     /* from rank 0: bytes of the policy that it hands over */

_Static_assert(COLLX_WARMUP_CALLS <= CALLS && CALLS < 1u << NODE_SHIFT &&
                   (uint64_t)NODE << NODE_SHIFT < SURVIVES &&
                   sizeof(struct collx_policy) <= UINT32_MAX,
               "they are beside each other");

/* After how many calls communicators are set up.  A policy that demands an order demands it of
 * every call. */
static uint64_t choose_calls(const struct collx_policy *policy)
{
    if (collx_policy_orders(policy) || collx_option_number(COLLX_OPTION_AT_ONCE))
        return 0;
#ifdef MPICH /* Open MPI's waiting ranks yield in a crowd. */
    if (collx_crowd_foreseen())
        return COLLX_WARMUP_CROWD;
#endif
    return COLLX_WARMUP_CALLS;
}

/* Who wants to hear of each communicator which way it goes is told of all of them; and another job
 * may not have the same to go by. */
static uint64_t count_node(int ranks)
{
    const int64_t pretended = collx_option_number(COLLX_OPTION_NODE_SIZE);
    int64_t most = collx_launcher_node_most(ranks);

    if (collx_option_number(COLLX_OPTION_VERBOSE) > 0 ||
        collx_option_number(COLLX_OPTION_OTHER_JOBS))
        return NODE;
    if (pretended > 0 && (pretended < most || !most))
        most = pretended;
    return most > 0 && most < NODE ? (uint64_t)most : NODE;
}

static uint64_t say_first(const struct collx_comm *world, const struct collx_policy *policy)
{
    uint64_t word = count_node(world->size) << NODE_SHIFT;

    if (world->rank == 0) {
        const uint64_t calls = choose_calls(policy);
        collx_setup_report_begin(policy, calls);
        word |= calls | collx_policy_bytes(policy) << POLICY_SHIFT;
        word |= collx_policy_sends(policy) ? SENDS : 0;
    }
    word |= collx_sessions_any() ? SESSIONS : 0;
    word |= collx_option_number(COLLX_OPTION_CHECK) ? SENDS : 0;
    word |= *collx_option_text(COLLX_OPTION_TRACE) ? TRACES : 0;
    word |= collx_world_survives() ? SURVIVES : 0;
    return word;
}

/* What has to be known before the first call on any communicator.  A session's may have been used
 * before this on some ranks, and will be after it on others: then it must not make a difference. */
static void set_warmup(uint64_t word)
{
    const uint64_t node = word >> NODE_SHIFT & NODE;

    if (word & SESSIONS)
        return;
    collx_agree_world_met();
    collx_warmup_set(word & SURVIVES ? COLLX_WARMUP_NEVER : word & CALLS);
    /* What works between nodes sends messages, to begin with. */
    if (!(word & SENDS) && node < NODE)
        collx_warmup_set_most((int)node);
}

uint64_t collx_setup_begin(void)
{
    static struct collx_policy received; /* nobody may be left without it for want of memory */
    struct collx_comm world = {.comm = MPI_COMM_WORLD};
    const struct collx_policy *policy = NULL;

    pmpi.Comm_rank(world.comm, &world.rank);
    pmpi.Comm_size(world.comm, &world.size);
    if (world.rank == 0)
        policy = collx_policy_own();
    /* Who has another version may take the first word for something else: then all do the usual.
     * It makes this call all the same, so there is no further word for anything. */
    const uint64_t version = collx_policy_version();
    uint64_t words[] = {say_first(&world, policy), version, ~version};
    if (collx_agree_first(&world, words, 3) || words[1] & words[2])
        return 0;
    const uint64_t word = words[0];
    if (word & SURVIVES) {
        strcpy(world.label, "this job");
        collx_setup_report_failed(&world, COLLX_WHY_SURVIVES);
    }
    set_warmup(word);
    /* Before a communicator without rank 0 is set up, whose first rank would read a policy. */
    collx_policy_hand_over(&world, word >> POLICY_SHIFT, &policy, &received);
    if (word & SENDS && !(word & SURVIVES))
        collx_messages_begin();
    if (!(word & TRACES))
        return 0;
    uint64_t job = world.rank == 0 ? collx_job_unique() : 0;
    return collx_agree_from_zero(&world, &job, sizeof job) ? 0 : job;
}
