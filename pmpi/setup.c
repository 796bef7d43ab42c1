/* Setting a communicator up: one agreement, by collectives of the MPI library itself, at a call
 * that all ranks make at the same point.
 *
 *   1. Everybody hands a card to everybody: version, node, whether it has a policy to hand over.
 *      Whoever has another collx keeps all from going on.
 *   2. Rank 0 hands its policy over, unless that is the built-in one, and its name for the
 *      communicator, unless all have the same.
 *   3. Everybody plans, by itself: the same policy, facts and name give the same plan.
 *   4. Rank 0 makes the segment that the plan's algorithms need; everybody maps it and attaches the
 *      algorithms.
 *   5. Everybody hears what went wrong anywhere: an algorithm that could not be attached everywhere
 *      is refused everywhere, and all go back to 3, without it.
 *   6. The slots are filled.
 *
 * Whatever happens, the ranks go through the same collectives, and afterwards all decide alike.
 */
#include "pmpi/comm.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/options.h"
#include "hw/shm.h"
#include "pmpi/calls.h"
#include "pmpi/crowd.h"
#include "pmpi/lend.h"
#include "pmpi/policy.h"
#include "pmpi/progress.h"
#include "pmpi/select.h"
#include "pmpi/trace.h"
#include "trace/recorder.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What must be the same for two processes to work together: raised when the layout of anything
 * that they share changes. */
enum { PROTOCOL = 1 };

struct card {
    uint32_t protocol;
    uint32_t policy_size; /* of rank 0: bytes of the policy that it hands over; 0: the built-in */
    uint64_t node;        /* equal for ranks that can share memory */
    uint64_t algorithms;  /* hash of what there is */
    uint64_t name;        /* hash of the communicator's name, which each rank may set differently */
};
_Static_assert(sizeof(struct card) == 32, "cards travel as bytes");

/* Where rank 0's segment is, for the others. */
struct address {
    int32_t pid, fd;
    int32_t error; /* negative errno: there is none */
    int32_t pad;
};

/* One setup, while it lasts. */
struct setup {
    struct collx_comm *comm;
    const struct collx_policy *policy;
    struct collx_policy *received; /* from rank 0; NULL: the policy is somebody else's */
    struct collx_choice choice[COLLX_ROUTED][COLLX_CHOICES];
    int count[COLLX_ROUTED];
    uint64_t refused; /* bit i: collx_algorithms[i] cannot be used here */
};

/* Wait for a collective of the setup.  It is where a job hangs of which not every process runs
 * under collx, so it does not wait in silence. */
static int finish(struct collx_comm *comm, MPI_Request *request)
{
    uint64_t begin = collx_clock_ns();
    int64_t patience = collx_option_number(COLLX_OPTION_STALL);
    bool said = patience == 0;
    int done = 0, error;

    for (unsigned round = 1; !(error = pmpi.Test(request, &done, MPI_STATUS_IGNORE)) && !done;
         round++) {
        if (round % 64 == 0 && !said &&
            (int64_t)((collx_clock_ns() - begin) / 1000000) > patience) {
            said = true;
            if (comm->rank == 0)
                collx_warn("the ranks of %s have been waiting for %.0f s to agree on their routes. "
                           "Does every rank run under collx? With Open MPI's mpirun, remote nodes "
                           "need -x LD_PRELOAD",
                           comm->team.name, (double)patience / 1e3);
        }
        sched_yield();
    }
    return error;
}

static int from_all(struct collx_comm *comm, const void *own, void *all, size_t bytes)
{
    MPI_Request request;
    int error =
        pmpi.Iallgather(own, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, comm->comm, &request);

    return error ? error : finish(comm, &request);
}

static int from_zero(struct collx_comm *comm, void *data, size_t bytes)
{
    MPI_Request request;
    int error = pmpi.Ibcast(data, (int)bytes, MPI_BYTE, 0, comm->comm, &request);

    return error ? error : finish(comm, &request);
}

/* Bits that any rank has set. */
static int any_of(struct collx_comm *comm, uint64_t *bits)
{
    MPI_Request request;
    uint64_t all = 0;
    int error = pmpi.Iallreduce(bits, &all, 1, MPI_UINT64_T, MPI_BOR, comm->comm, &request);

    error = error ? error : finish(comm, &request);
    *bits = all;
    return error;
}

static uint64_t algorithms_hash(void)
{
    uint64_t hash = COLLX_HASH_START;

    for (const struct collx_algorithm *const *each = collx_algorithms; *each; each++) {
        hash = collx_hash(hash, &(*each)->kind, sizeof(*each)->kind);
        hash = collx_hash(hash, (*each)->name, strlen((*each)->name));
    }
    return hash;
}

/* This rank's node; COLLX_NODE_SIZE cuts a real one into several. */
static uint64_t node_of(struct collx_comm *comm)
{
    int64_t size = collx_option_number(COLLX_OPTION_NODE_SIZE);
    uint64_t node = collx_shm_node();

    if (size > 0)
        node ^= (uint64_t)(1 + collx_world_rank(comm) / size) * 0x9e3779b97f4a7c15u;
    return node;
}

static int compare(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

    return a < b ? -1 : a > b;
}

static int count_nodes(const struct card *card, int ranks, struct collx_facts *facts)
{
    uint64_t *node = malloc((size_t)ranks * sizeof *node);

    if (!node)
        return -ENOMEM;
    for (int i = 0; i < ranks; i++)
        node[i] = card[i].node;
    qsort(node, (size_t)ranks, sizeof *node, compare);
    *facts = (struct collx_facts){.ranks = ranks, .node_ranks_min = ranks};
    for (int first = 0, next; first < ranks; first = next) {
        for (next = first; next < ranks && node[next] == node[first]; next++)
            ;
        int here = next - first;
        facts->nodes++;
        facts->node_ranks_min = here < facts->node_ranks_min ? here : facts->node_ranks_min;
        facts->node_ranks_max = here > facts->node_ranks_max ? here : facts->node_ranks_max;
    }
    free(node);
    return 0;
}

/* 1.  *policy_size and *same_name are the same on all ranks.  0; COLLX_EUNFIT, on all ranks, where
 * they do not fit together; or an MPI error. */
static int exchange_cards(struct setup *setup, uint32_t *policy_size, bool *same_name)
{
    struct collx_comm *comm = setup->comm;
    struct card *all = calloc((size_t)comm->size, sizeof *all);
    struct card own = {
        .protocol = PROTOCOL,
        .node = node_of(comm),
        .algorithms = algorithms_hash(),
        .name = collx_hash(COLLX_HASH_START, comm->name, strlen(comm->name)),
    };

    if (!all)
        return MPI_ERR_NO_MEM;
    setup->policy = collx_policy_builtin();
    if (comm->rank == 0) {
        setup->policy = collx_policy_own();
        if (setup->policy != collx_policy_builtin())
            own.policy_size = (uint32_t)collx_policy_size(setup->policy);
    }
    int error = from_all(comm, &own, all, sizeof own);
    *same_name = true;
    for (int i = 0; !error && i < comm->size; i++) {
        *same_name = *same_name && all[i].name == all[0].name;
        if (all[i].protocol == all[0].protocol && all[i].algorithms == all[0].algorithms)
            continue;
        error = COLLX_EUNFIT;
        if (comm->rank == 0)
            collx_warn("rank %d of %s runs another version of collx than rank 0, so its "
                       "collectives stay with the MPI library. Use one installation for all ranks",
                       i, comm->team.name);
    }
    if (!error && count_nodes(all, comm->size, &comm->facts))
        error = MPI_ERR_NO_MEM;
    *policy_size = all[0].policy_size;
    free(all);
    return error;
}

/* 2. */
static int hand_over_policy(struct setup *setup, uint32_t size)
{
    struct collx_comm *comm = setup->comm;

    if (comm->rank == 0)
        return size ? from_zero(comm, (void *)(uintptr_t)setup->policy, size) : 0;
    if (size) {
        setup->received = calloc(1, sizeof *setup->received);
        if (!setup->received)
            return MPI_ERR_NO_MEM;
        int error = from_zero(comm, setup->received, size);
        if (error)
            return error;
        setup->policy = setup->received;
    }
    collx_policy_adopt(setup->policy);
    return 0;
}

/* 3. */
static void plan(struct setup *setup)
{
    struct collx_comm *comm = setup->comm;

    for (int kind = 0; kind < COLLX_ROUTED; kind++) {
        setup->count[kind] =
            collx_policy_plan(setup->policy, &comm->facts, comm->name, (enum collx_kind)kind,
                              setup->refused, setup->choice[kind], COLLX_CHOICES);
        if (setup->count[kind] < 0) {
            if (comm->rank == 0)
                collx_warn("the policy %s divides %s on %s into more than %d ranges, so it stays "
                           "with the MPI library. Use fewer rules",
                           setup->policy->source, collx_kind_name((unsigned)kind), comm->team.name,
                           COLLX_CHOICES);
            setup->count[kind] = 0;
        }
    }
}

static bool planned(const struct setup *setup, const struct collx_algorithm *algorithm,
                    struct collx_args *args)
{
    for (int i = 0; i < setup->count[algorithm->kind]; i++) {
        const struct collx_choice *choice = &setup->choice[algorithm->kind][i];
        if (choice->algorithm == algorithm) {
            *args = choice->args;
            return true;
        }
    }
    return false;
}

/* Bytes of the segment: the algorithms' pieces, in the order of collx_algorithms. */
static size_t space(const struct setup *setup, const struct collx_algorithm *algorithm)
{
    struct collx_args args;

    if (!algorithm->space || !planned(setup, algorithm, &args))
        return 0;
    return (algorithm->space(&setup->comm->facts, &args) + COLLX_LINE - 1) &
           ~(size_t)(COLLX_LINE - 1);
}

/* 4, first half.  *mapped: this rank has the segment.  0 or an MPI error. */
static int map_segment(struct setup *setup, bool *mapped)
{
    struct collx_comm *comm = setup->comm;
    struct address address = {.pid = getpid(), .fd = -1};
    size_t size = sizeof(struct collx_crowd);

    for (const struct collx_algorithm *const *each = collx_algorithms; *each; each++)
        size += space(setup, *each);
    if (comm->rank == 0)
        address.error = collx_shm_create(size, &comm->segment, &address.fd);
    int failed = address.error, error = from_zero(comm, &address, sizeof address);
    if (comm->rank != 0 && !error && !address.error)
        failed = collx_shm_open(address.pid, address.fd, size, &comm->segment);
    /* Nobody may close it before everybody has opened it, which is known in step 5. */
    comm->segment_fd = comm->rank == 0 ? address.fd : -1;
    comm->segment_size = size;
    *mapped = comm->segment != NULL;
    if (failed)
        collx_warn("rank %d of %s cannot %s %zu KiB of memory to share (%s), so its collectives go "
                   "another way than through shared memory",
                   comm->rank, comm->team.name, comm->rank ? "open" : "make", size / 1024,
                   strerror(-failed));
    return error;
}

/* 4, second half: what cannot be attached is refused. */
static void attach(struct setup *setup, bool mapped)
{
    struct collx_comm *comm = setup->comm;
    struct collx_args args;
    size_t offset = sizeof(struct collx_crowd);

    if (mapped)
        collx_crowd_join(comm->segment);
    for (int i = 0; collx_algorithms[i]; i++) {
        const struct collx_algorithm *algorithm = collx_algorithms[i];
        struct collx_attached *attached = &comm->attached[comm->attached_count];

        if (!planned(setup, algorithm, &args))
            continue;
        if (mapped && !algorithm->attach(&comm->team, &args, (char *)comm->segment + offset,
                                         &attached->slot)) {
            attached->algorithm = algorithm;
            attached->route = (uint8_t)(i + 1);
            comm->attached_count++;
        } else {
            setup->refused |= (uint64_t)1 << i;
        }
        offset += space(setup, algorithm);
    }
}

static void detach(struct collx_comm *comm)
{
    while (comm->attached_count) {
        struct collx_attached *attached = &comm->attached[--comm->attached_count];
        attached->algorithm->detach(attached->slot.state);
    }
    collx_shm_close(comm->segment, comm->segment_size);
    comm->segment = NULL;
}

static int count_algorithms(void)
{
    int count = 0;

    while (collx_algorithms[count])
        count++;
    return count;
}

static bool any_planned(const struct setup *setup)
{
    struct collx_args args;

    for (const struct collx_algorithm *const *each = collx_algorithms; *each; each++)
        if (planned(setup, *each, &args))
            return true;
    return false;
}

/* 3 to 5, once.  *again is the same on all ranks.  0 or an MPI error. */
static int try_plan(struct setup *setup, bool *again)
{
    struct collx_comm *comm = setup->comm;
    uint64_t refused = setup->refused;
    bool mapped;

    *again = false;
    plan(setup);
    if (!any_planned(setup))
        return 0;
    int error = map_segment(setup, &mapped);
    if (error)
        return error;
    attach(setup, mapped);
    error = any_of(comm, &setup->refused);
    if (comm->segment_fd >= 0)
        close(comm->segment_fd);
    comm->segment_fd = -1;
    *again = setup->refused != refused;
    if (*again)
        detach(comm);
    return error;
}

/* 1 to 5.  0, or why nothing comes of it, which is the same on all ranks. */
static int agree(struct setup *setup)
{
    struct collx_comm *comm = setup->comm;
    uint32_t policy_size;
    bool same_name, again = true;

    int error = exchange_cards(setup, &policy_size, &same_name);
    if (!error)
        error = hand_over_policy(setup, policy_size);
    if (!error && !same_name)
        error = from_zero(comm, comm->name, sizeof comm->name);
    while (!error && again)
        error = try_plan(setup, &again);
    return error;
}

static void explain_line(void *ctx, const char *line)
{
    (void)ctx;
    collx_warn("%s", line);
}

static void explain(const struct setup *setup)
{
    struct collx_comm *comm = setup->comm;

    for (int kind = 0; kind < COLLX_ROUTED; kind++)
        collx_policy_explain(setup->policy, &comm->facts, comm->name, (enum collx_kind)kind,
                             setup->refused, -1, COLLX_OP_NONE, explain_line, NULL);
}

void collx_comm_setup(struct collx_comm *comm)
{
    int keep = errno;
    struct setup *setup = calloc(1, sizeof *setup);

    collx_comm_name(comm);
    comm->attached = calloc((size_t)count_algorithms(), sizeof *comm->attached);
    int error = setup && comm->attached ? 0 : MPI_ERR_NO_MEM;
    comm->segment_fd = -1;
    comm->team = (struct collx_team){
        .rank = comm->rank,
        .size = comm->size,
        .ops = &collx_lent,
        .ctx = comm,
        .name = comm->label,
    };
    if (!error)
        error = collx_self_init(comm->comm);
    if (!error) {
        setup->comm = comm;
        error = agree(setup);
    }
    if (!error) {
        comm->never = collx_progress_take();
        collx_crowd_decide(comm->segment, comm->facts.node_ranks_max, &comm->team);
    }
    for (int kind = 0; kind < COLLX_ROUTED; kind++) { /* 6 */
        if (error || collx_select_install(comm, (enum collx_kind)kind, setup->choice[kind],
                                          setup->count[kind]))
            collx_calls_to_mpi(comm, (enum collx_kind)kind, COLLX_REASON_SETUP_FAILED);
    }
    if (!error && comm->rank == 0 && collx_option_number(COLLX_OPTION_VERBOSE) > 0)
        explain(setup);
    if (setup)
        free(setup->received);
    free(setup);
    errno = keep;
}

void collx_comm_teardown(struct collx_comm *comm)
{
    detach(comm);
    for (int kind = 0; kind < COLLX_ROUTED; kind++)
        free(comm->selection[kind]);
    free(comm->attached);
    collx_progress_give(comm->never);
}
