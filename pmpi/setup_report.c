#include "algorithms/crowd.h"
#include "base/log.h"
#include "base/options.h"
#include "hw/shm.h"
#include "pmpi/policy.h"
#include "pmpi/setup_state.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

void collx_setup_report_begin(const struct collx_policy *policy, uint64_t calls)
{
    char mpi[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    char when[160] = "before its first MPI_Barrier, MPI_Bcast or MPI_Allreduce";
    int length;

    /* A policy without a name is that of collx-bench, which listens to what is said of each
     * communicator, and not in MPI_Init. */
    if (collx_option_number(COLLX_OPTION_VERBOSE) <= 0 ||
        strncmp(policy->source, COLLX_POLICY_NAMELESS, strlen(COLLX_POLICY_NAMELESS)) == 0)
        return;
    pmpi.Get_library_version(mpi, &length);
    mpi[strcspn(mpi, ",\n")] = '\0';
    collx_text_clean(mpi, ' ');
    if (calls)
        snprintf(when, sizeof when,
                 "after %llu calls of MPI_Barrier, MPI_Bcast and MPI_Allreduce at the earliest "
                 "(COLLX_AT_ONCE=on: before the first)",
                 (unsigned long long)(calls < COLLX_WARMUP_EARLY ? calls : COLLX_WARMUP_EARLY));
    collx_warn("version %s, %s, policy %s. Which way its collectives go is said of each "
               "communicator when it is set up: %s",
               COLLX_RELEASE, mpi, policy->source, when);
}

void collx_setup_report_unshared(const struct collx_comm *comm, size_t size, uint64_t errors)
{
    static bool node_said, comm_said, other_said;
    const int bit = __builtin_ctzll(errors);
    const int error = bit == COLLX_LIMIT_STALE ? ESTALE : bit;
    const size_t kib = size / 1024;

    if (comm->rank != 0)
        return;
    if (bit == COLLX_LIMIT_NODE)
        collx_warn_once(&node_said,
                        "the ranks of %s cannot share %zu KiB of memory (COLLX_MEMORY is used up), "
                        "so some or all of its collectives stay with the MPI library, and so it "
                        "will be with others. Raise it, or free communicators; COLLX_VERBOSE=1 "
                        "tells which",
                        comm->label, kib);
    else if (bit == COLLX_LIMIT_COMM)
        collx_warn_once(&comm_said,
                        "the ranks of %s cannot share %zu KiB of memory (COLLX_MEMORY_COMM is "
                        "less), so some or all of its collectives stay with the MPI library. Raise "
                        "it; COLLX_VERBOSE=1 tells which",
                        comm->label, kib);
    else
        collx_warn_once(&other_said,
                        "the ranks of %s cannot share %zu KiB of memory (%s), so its collectives "
                        "go another way, and so it may be with others. %s",
                        comm->label, kib, strerror(error), collx_shm_advice(error));
}

static void explain_line(void *ctx, const char *line)
{
    (void)ctx;
    collx_warn("%s", line);
}

static void explain_memory(const struct collx_setup *setup)
{
    const struct collx_comm *comm = setup->comm;

    if (comm->routes.segment)
        collx_warn("memory of %s: its ranks share %zu KiB%s; rank 0 has taken %zu of its %zu KiB "
                   "of COLLX_MEMORY",
                   comm->label, comm->routes.segment_size / 1024,
                   comm->routes.facts.nodes > 1 ? " on each node" : "",
                   collx_segments_taken() / 1024, collx_segment_share(comm) / 1024);
    for (int i = 0; collx_algorithms[i] && i < 63; i++)
        if (setup->too_large >> i & 1)
            collx_warn("memory of %s: not enough for %s of %s", comm->label,
                       collx_algorithms[i]->name, collx_kind_name(collx_algorithms[i]->kind));
}

void collx_setup_explain(const struct collx_setup *setup)
{
    struct collx_comm *comm = setup->comm;
    char text[COLLX_WHY_MAX];

    for (int kind = 0; kind < COLLX_ROUTED; kind++)
        collx_policy_explain(setup->policy, &comm->routes.facts, comm->name, (enum collx_kind)kind,
                             &setup->refused, -1, COLLX_OP_NONE, explain_line, NULL);
    if (comm->routes.segment)
        collx_warn("waiting on %s: %s", comm->label,
                   collx_crowd_explain(comm->routes.segment, comm->routes.node_ranks,
                                       comm->routes.team, text, sizeof text));
    for (int i = 0; i < comm->routes.attached_count; i++) {
        const struct collx_attached *attached = &comm->routes.attached[i];

        if (!attached->algorithm->describe)
            continue;
        attached->algorithm->describe(attached->slot.state, text, sizeof text);
        collx_warn("%s of %s on %s: %s", attached->algorithm->name,
                   collx_kind_name(attached->algorithm->kind), comm->label, text);
    }
    explain_memory(setup);
}

void collx_setup_report_failed(const struct collx_comm *comm, const char *what)
{
    static bool said;
    const bool orders = comm->rank == 0 && collx_policy_orders(collx_policy_own());

    if (comm->rank == 0)
        collx_warn_once(&said,
                        "the ranks of %s %s. So its collectives stay with the MPI "
                        "library%s",
                        comm->label, what,
                        orders ? ", which combines in an order of its own, although the policy "
                                 "demands order: rank"
                               : "");
}

void collx_setup_report_unordered(const struct collx_comm *comm, const struct collx_setup *setup)
{
    static bool said;

    for (int kind = 0; comm->rank == 0 && kind < COLLX_ROUTED; kind++)
        for (int i = 0; i < setup->count[kind]; i++)
            if (setup->choice[kind][i].rank_order && !setup->choice[kind][i].candidates)
                collx_warn_once(
                    &said,
                    "the policy %s demands order: rank of %s, but nothing that combines "
                    "so could be set up on %s: the MPI library does it, in an order of "
                    "its own. COLLX_VERBOSE=1 tells why",
                    setup->policy->source, collx_kind_name((unsigned)kind), comm->label);
}
