/* From rules to choices: which algorithm for which sizes and ops. */
#include "base/error.h"
#include "base/utf8.h"
#include "policies/match.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Behind the first character; of what is no UTF-8 each byte is one. */
static const char *next(const char *text)
{
    size_t length = collx_utf8_length(text);

    return text + (length ? length : 1);
}

/* Not fnmatch(): that depends on the locale, which may differ between ranks.  `stars`: a '*' in the
 * text stands for any number of characters, which is more than a '?' takes. */
static bool matches(const char *pattern, const char *text, bool stars)
{
    const char *star = NULL, *resume = NULL;

    while (*text || *pattern) {
        if (*pattern == '*') {
            star = pattern++;
            resume = text;
        } else if (*text && *pattern == '?' && !(stars && *text == '*')) {
            pattern++;
            text = next(text);
        } else if (*text && *pattern == *text) {
            pattern++;
            text++;
        } else if (star && *resume) {
            pattern = star + 1;
            text = resume = next(resume);
        } else {
            return false;
        }
    }
    return true;
}

bool collx_glob(const char *pattern, const char *name)
{
    return matches(pattern, name, false);
}

bool collx_glob_holds(const char *pattern, const char *other)
{
    return matches(pattern, other, true);
}

static int out_of(const struct collx_range *range, int64_t value, const char *what, char *why,
                  size_t size)
{
    char text[2 * COLLX_VALUE_MAX];

    if (collx_range_has(range, value))
        return 0;
    snprintf(why, size, "%s: %" PRId64 " is not in %s", what, value,
             collx_range_format(COLLX_NUMBER, range, 1, text, sizeof text));
    return COLLX_EUNFIT;
}

int collx_rule_fits(const struct collx_rule *rule, const struct collx_facts *facts,
                    const char *comm_name, enum collx_kind kind, char *why, size_t size)
{
    if (!(rule->kinds & 1u << kind)) {
        snprintf(why, size, "collective: not for %s", collx_kind_name(kind));
        return COLLX_EUNFIT;
    }
    if (!collx_glob(rule->comm, comm_name)) {
        snprintf(why, size, "comm: '%s' does not match '%s'", comm_name, rule->comm);
        return COLLX_EUNFIT;
    }
    int unfit = out_of(&rule->ranks, facts->ranks, "ranks", why, size);
    if (!unfit)
        unfit = out_of(&rule->nodes, facts->nodes, "nodes", why, size);
    if (!unfit)
        unfit = out_of(&rule->node_ranks, facts->node_ranks_min, "ranks_per_node", why, size);
    if (!unfit)
        unfit = out_of(&rule->node_ranks, facts->node_ranks_max, "ranks_per_node", why, size);
    return unfit;
}

static bool is_refused(const struct collx_algorithm *algorithm, const struct collx_args *args,
                       const struct collx_refused *refused, char *why, size_t size)
{
    snprintf(why, size, "it could not be set up on all ranks");
    for (unsigned i = 0; refused && i < 64 && collx_algorithms[i]; i++)
        if (collx_algorithms[i] == algorithm && (refused->algorithms >> i & 1))
            return true;
    for (int i = 0; refused && i < refused->uses; i++)
        if (refused->use[i].algorithm == algorithm &&
            !memcmp(&refused->use[i].args, args, sizeof *args)) {
            snprintf(why, size, "%s", refused->use[i].why);
            return true;
        }
    return false;
}

const struct collx_use *collx_rule_use(const struct collx_rule *rule, enum collx_kind kind,
                                       uint32_t i)
{
    static const struct collx_use last_resort = {.name = "ordered"};

    if (i < rule->uses)
        return &rule->use[i];
    for (uint32_t named = 0; named < rule->uses; named++)
        if (strcmp(rule->use[named].name, last_resort.name) == 0)
            return NULL;
    return i == rule->uses && collx_rule_orders(rule, kind) ? &last_resort : NULL;
}

int collx_use_fits(const struct collx_rule *rule, const struct collx_use *use,
                   const struct collx_facts *facts, enum collx_kind kind,
                   const struct collx_refused *refused, const struct collx_algorithm **algorithm,
                   char *why, size_t size)
{
    const bool orders = collx_rule_orders(rule, kind);

    *algorithm = NULL;
    if (strcmp(use->name, "pmpi") == 0) {
        snprintf(why, size, "the MPI library does not promise order: rank");
        return orders ? COLLX_EUNFIT : 0;
    }

    const struct collx_algorithm *found = collx_algorithm_find(kind, use->name);
    if (!found) {
        snprintf(why, size, "there is no %s for %s", use->name, collx_kind_name(kind));
        return COLLX_EUNFIT;
    }
    if (orders && !found->rank_order) {
        snprintf(why, size, "it does not combine in the order of the ranks");
        return COLLX_EUNFIT;
    }
    if (is_refused(found, &use->args[kind], refused, why, size))
        return COLLX_EUNFIT;
    if (found->query && found->query(facts, &use->args[kind], why, size))
        return COLLX_EUNFIT;
    *algorithm = found;
    return 0;
}

/* The first sizes of the intervals within which no rule begins or ends.  Returns how many. */
static int find_intervals(const struct collx_policy *policy, uint64_t fitting,
                          int64_t start[2 * COLLX_POLICY_RULES + 1])
{
    int count = 1;

    start[0] = 0;
    for (uint32_t r = 0; r < policy->rules; r++) {
        const struct collx_range *bytes = &policy->rule[r].bytes;
        int64_t edge[2] = {bytes->first, bytes->last == INT64_MAX ? 0 : bytes->last + 1};

        for (int e = 0; fitting >> r & 1 && e < 2; e++) {
            int at = count;
            while (start[at - 1] > edge[e]) /* no edge is below start[0] */
                at--;
            if (start[at - 1] == edge[e])
                continue;
            memmove(start + at + 1, start + at, (size_t)(count - at) * sizeof *start);
            start[at] = edge[e];
            count++;
        }
    }
    return count;
}

static bool is_among(const struct collx_choice *choice, const struct collx_algorithm *algorithm)
{
    for (int i = 0; i < choice->candidates; i++)
        if (choice->candidate[i].algorithm == algorithm)
            return true;
    return false;
}

void collx_choice_decide(struct collx_choice *choice, const struct collx_policy *policy,
                         const struct collx_facts *facts, enum collx_kind kind,
                         const struct collx_refused *refused)
{
    const struct collx_algorithm *found;
    const struct collx_use *use;
    char why[COLLX_WHY_MAX];

    if (choice->rule == UINT32_MAX)
        return;
    const struct collx_rule *rule = &policy->rule[choice->rule];
    choice->rank_order = collx_rule_orders(rule, kind);
    for (uint32_t i = 0; (use = collx_rule_use(rule, kind, i)); i++) {
        if (collx_use_fits(rule, use, facts, kind, refused, &found, why, sizeof why) ||
            is_among(choice, found))
            continue;
        if (!found)
            return;
        /* Of more than there is room for, the last one, which leaves least to the MPI library. */
        choice->candidates -= choice->candidates == COLLX_CANDIDATES;
        choice->candidate[choice->candidates++] = (struct collx_candidate){found, &use->args[kind]};
        if (!found->takes)
            return;
    }
}

/* The choices for one interval.  Returns how many, or -E2BIG. */
static int plan_interval(const struct collx_policy *policy, uint64_t fitting, enum collx_kind kind,
                         struct collx_range bytes, struct collx_choice *choices, int max)
{
    uint32_t open = collx_kind_reduces(kind) ? UINT32_MAX : 1u << COLLX_OP_NONE;
    int count = 0;

    for (uint32_t r = 0; open && r <= policy->rules; r++) {
        uint32_t rule = r, taken = open; /* what no rule takes is a choice as well */

        if (r == policy->rules)
            rule = UINT32_MAX;
        else if (!(fitting >> r & 1) || !collx_range_has(&policy->rule[r].bytes, bytes.first))
            continue;
        else
            taken &= policy->rule[r].ops;
        if (!taken)
            continue;
        if (count == max)
            return -E2BIG;
        open &= ~taken;
        choices[count++] = (struct collx_choice){
            .bytes = bytes, .ops = collx_kind_reduces(kind) ? taken : UINT32_MAX, .rule = rule};
    }
    return count;
}

static bool same_choices(const struct collx_choice *a, const struct collx_choice *b, int count)
{
    for (int i = 0; i < count; i++)
        if (a[i].rule != b[i].rule || a[i].ops != b[i].ops)
            return false;
    return true;
}

int collx_policy_plan(const struct collx_policy *policy, const struct collx_facts *facts,
                      const char *comm_name, enum collx_kind kind,
                      const struct collx_refused *refused, struct collx_choice *choices, int max)
{
    int64_t start[2 * COLLX_POLICY_RULES + 1];
    char why[COLLX_WHY_MAX];
    uint64_t fitting = 0;
    int count = 0, before = 0;

    _Static_assert(COLLX_POLICY_RULES <= 64, "one bit a rule");
    for (uint32_t r = 0; r < policy->rules; r++)
        if (collx_rule_fits(&policy->rule[r], facts, comm_name, kind, why, sizeof why) == 0)
            fitting |= 1ull << r;

    int intervals = kind == COLLX_BARRIER ? 1 : find_intervals(policy, fitting, start);
    start[0] = 0;
    for (int i = 0; i < intervals; i++) {
        struct collx_range bytes = {start[i], i + 1 < intervals ? start[i + 1] - 1 : INT64_MAX};
        int added = plan_interval(policy, fitting, kind, bytes, choices + count, max - count);

        if (added < 0)
            return added;
        if (added == before && same_choices(choices + count - before, choices + count, added)) {
            for (int c = count - before; c < count; c++)
                choices[c].bytes.last = bytes.last;
        } else {
            count += added;
            before = added;
        }
    }
    for (int c = 0; c < count; c++)
        collx_choice_decide(&choices[c], policy, facts, kind, refused);
    return count;
}
