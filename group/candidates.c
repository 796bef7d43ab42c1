/* From policy rules to what may carry out calls: for each collective, what each rule that fits the
 * group names and can run, in order.  There is no MPI library here that could do the rest, so what
 * one rule cannot do the next does, and after the last one those of the built-in policy. */
#include "group/state.h"
#include "hw/shm.h"
#include "policies/match.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Those of one use of two rules are one. */
static int attach_once(struct collx_group *group, const struct collx_algorithm *algorithm,
                       const struct collx_args *args)
{
    int i = 0;

    while (i < group->attached_count && (group->attached[i].algorithm != algorithm ||
                                         memcmp(&group->attached[i].args, args, sizeof *args) != 0))
        i++;
    if (i == group->attached_count) {
        size_t space = algorithm->space ? algorithm->space(&group->facts, args) : 0;
        group->attached[group->attached_count++] = (struct collx_group_attached){
            .algorithm = algorithm,
            .args = *args,
            .space = collx_line_up(space),
        };
    }
    return i;
}

/* Something before it takes all that it would. */
static bool is_known(const struct collx_group *group, const struct collx_group_candidate *candidate)
{
    for (const struct collx_group_candidate *each = group->candidate;
         each < group->candidate + group->candidates; each++)
        if (each->kind == candidate->kind && each->attached == candidate->attached &&
            each->bytes.first <= candidate->bytes.first &&
            each->bytes.last >= candidate->bytes.last && !(candidate->ops & ~each->ops))
            return true;
    return false;
}

static void add_rule(struct collx_group *group, const struct collx_rule *rule, enum collx_kind kind)
{
    const struct collx_algorithm *algorithm;
    const struct collx_use *use;
    char why[COLLX_WHY_MAX];

    if (collx_rule_fits(rule, &group->facts, group->name, kind, why, sizeof why))
        return;
    for (uint32_t i = 0; (use = collx_rule_use(rule, kind, i)); i++) {
        if (collx_use_fits(rule, use, &group->facts, kind, 0, &algorithm, why, sizeof why) ||
            !algorithm)
            continue;
        const struct collx_group_candidate candidate = {
            .kind = kind,
            .bytes = rule->bytes,
            .ops = rule->ops,
            .attached = attach_once(group, algorithm, &use->args[kind]),
        };
        if (!is_known(group, &candidate))
            group->candidate[group->candidates++] = candidate;
    }
}

int collx_group_list(struct collx_group *group, const struct collx_policy *policy)
{
    const struct collx_policy *last = collx_group_policy_builtin();
    const size_t most =
        (size_t)(policy->rules + last->rules) * (COLLX_POLICY_USES + 1) * COLLX_ROUTED;

    group->candidate = calloc(most, sizeof *group->candidate);
    group->attached = calloc(most, sizeof *group->attached);
    if (!group->candidate || !group->attached)
        return -ENOMEM;
    for (int kind = 0; kind < COLLX_ROUTED; kind++) {
        for (uint32_t i = 0; i < policy->rules; i++)
            add_rule(group, &policy->rule[i], (enum collx_kind)kind);
        for (uint32_t i = 0; i < last->rules; i++)
            add_rule(group, &last->rule[i], (enum collx_kind)kind);
    }
    return 0;
}
