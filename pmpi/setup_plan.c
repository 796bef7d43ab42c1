/* A setup's step 3, and what is refused in 5 (setup.c): what each rank finds out by itself, the
 * same on all. */
#include "pmpi/setup_state.h"

#include "algorithms/crowd.h"
#include "base/error.h"
#include "base/log.h"
#include "hw/shm.h"

#include <string.h>

/* For each collective the choices between its calls. */
static void choose(struct collx_setup *setup)
{
    struct collx_comm *comm = setup->comm;

    for (int kind = 0; kind < COLLX_ROUTED; kind++) {
        setup->count[kind] =
            collx_policy_plan(setup->policy, &comm->routes.facts, comm->name, (enum collx_kind)kind,
                              &setup->refused, setup->choice[kind], COLLX_CHOICES);
        if (setup->count[kind] < 0) {
            static bool said;
            if (comm->rank == 0)
                collx_warn_once(
                    &said,
                    "the policy %s divides %s on %s into more than %d ranges, so it stays "
                    "with the MPI library. Use fewer rules",
                    setup->policy->source, collx_kind_name((unsigned)kind), comm->routes.team->name,
                    COLLX_CHOICES);
            setup->count[kind] = 0;
        }
    }
}

/* `candidate` is wanted: maybe known already.  Returns how much it adds to the segment, from
 * `offset` on. */
static size_t want(struct collx_setup *setup, const struct collx_candidate *candidate,
                   size_t offset)
{
    const struct collx_algorithm *algorithm = candidate->algorithm;
    const struct collx_args *args = candidate->args;
    struct collx_wanted *wanted = &setup->wanted[setup->wanted_count];
    bool known = false;

    for (const struct collx_wanted *each = setup->wanted; each < wanted && !known; each++)
        known = collx_algorithms[each->algorithm] == algorithm &&
                !memcmp(&each->args, args, sizeof each->args);
    if (known)
        return 0;
    *wanted = (struct collx_wanted){.args = *args};
    while (collx_algorithms[wanted->algorithm] != algorithm)
        wanted->algorithm++;
    if (algorithm->space)
        wanted->space = algorithm->space(&setup->comm->routes.facts, args);
    wanted->space = collx_line_up(wanted->space);
    wanted->offset = offset;
    setup->wanted_count++;
    return wanted->space;
}

size_t collx_setup_plan(struct collx_setup *setup)
{
    size_t size = sizeof(struct collx_crowd);

    choose(setup);
    setup->wanted_count = 0;
    for (int kind = 0; kind < COLLX_ROUTED; kind++)
        for (int i = 0; i < setup->count[kind]; i++) {
            const struct collx_choice *choice = &setup->choice[kind][i];
            for (int c = 0; c < choice->candidates; c++)
                size += want(setup, &choice->candidate[c], size);
        }
    return size > sizeof(struct collx_crowd) ? size : 0;
}

uint64_t collx_setup_limit(int failed)
{
    if (failed == COLLX_EGONE)
        return COLLX_LIMIT_GONE;
    if (!failed)
        return 0;
    if (failed == -EDQUOT)
        return (uint64_t)1 << COLLX_LIMIT_NODE;
    if (failed == -ESTALE)
        return (uint64_t)1 << COLLX_LIMIT_STALE;
    /* What else is beyond, as EOPNOTSUPP, says that the system does not do it. */
    return (uint64_t)1 << (-failed < COLLX_LIMIT_ERRORS ? -failed : ENOSYS);
}

/* Some calls are offered to it before any other. */
static bool is_preferred(const struct collx_setup *setup, const struct collx_wanted *wanted)
{
    for (int kind = 0; kind < COLLX_ROUTED; kind++)
        for (int i = 0; i < setup->count[kind]; i++) {
            const struct collx_choice *choice = &setup->choice[kind][i];
            if (choice->candidates &&
                choice->candidate[0].algorithm == collx_algorithms[wanted->algorithm])
                return true;
        }
    return false;
}

/* Which of two is rather done without: what is not preferred, then what needs more. */
static bool goes_before(const struct collx_setup *setup, const struct collx_wanted *a,
                        const struct collx_wanted *b)
{
    const bool prefers_a = is_preferred(setup, a), prefers_b = is_preferred(setup, b);

    return prefers_a != prefers_b ? prefers_b : a->space > b->space;
}

void collx_setup_refuse(struct collx_setup *setup, uint64_t errors)
{
    const uint64_t limits = (uint64_t)1 << COLLX_LIMIT_NODE | (uint64_t)1 << COLLX_LIMIT_COMM;
    const struct collx_wanted *first = NULL;
    uint64_t refused = 0;

    for (const struct collx_wanted *each = setup->wanted;
         each < setup->wanted + setup->wanted_count; each++) {
        if (!each->space)
            continue;
        refused |= (uint64_t)1 << each->algorithm;
        if (!first || goes_before(setup, each, first))
            first = each;
    }
    if (!(errors & ~limits))
        refused = (uint64_t)1 << first->algorithm;
    setup->refused.algorithms |= refused;
    setup->too_large |= refused;
}
