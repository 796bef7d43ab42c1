/* Who decides what, in words: for `collx policy explain` and COLLX_VERBOSE=1. */
#include "policies/match.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { CHOICES = 256, LINE = 1024 };

struct listener {
    void (*emit)(void *ctx, const char *line);
    void *ctx;
};

/* A question: one collective on one communicator. */
struct question {
    const struct collx_policy *policy;
    const struct collx_facts *facts;
    const char *comm_name;
    enum collx_kind kind;
    const struct collx_refused *refused;
};

static void say(const struct listener *to, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void say(const struct listener *to, const char *format, ...)
{
    char line[LINE];
    va_list args;

    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    to->emit(to->ctx, line);
}

/* "nx(n=6, mode=exchange)": the parameters that are not as they are initially. */
static char *format_use(const struct collx_use *use, enum collx_kind kind, char *text, size_t size)
{
    const struct collx_algorithm *algorithm = collx_algorithm_find(kind, use->name);
    const struct collx_param *param = algorithm ? algorithm->params : NULL;
    size_t length = (size_t)snprintf(text, size, "%s", use->name);
    bool any = false;

    for (unsigned i = 0; param && param[i].name && length < size; i++) {
        int64_t value = use->args[kind].value[i];
        char number[COLLX_VALUE_MAX];

        if (value == param[i].initial)
            continue;
        snprintf(number, sizeof number, "%" PRId64, value);
        length += (size_t)snprintf(text + length, size - length, "%s%s=%s", any ? ", " : "(",
                                   param[i].name, param[i].words ? param[i].words[value] : number);
        any = true;
    }
    if (any && length < size)
        snprintf(text + length, size - length, ")");
    return text;
}

/* "sum max", or what is missing where that is shorter */
static char *format_ops(uint32_t ops, char *text, size_t size)
{
    uint32_t all = ((1u << COLLX_OP_COUNT) - 1) & ~(1u << COLLX_OP_NONE);
    bool most = __builtin_popcount(ops & all) > COLLX_OP_COUNT / 2;
    size_t length = 0;

    if ((ops & all) == all) {
        snprintf(text, size, "any");
        return text;
    }
    if (most)
        length = (size_t)snprintf(text, size, "not");
    for (unsigned op = 0; op < COLLX_OP_COUNT && length < size; op++)
        if ((most ? all & ~ops : all & ops) >> op & 1)
            length += (size_t)snprintf(text + length, size - length, "%s%s", length ? " " : "",
                                       collx_op_name(op));
    return text;
}

static char *format_rule(const struct collx_policy *policy, uint32_t rule, char *text, size_t size)
{
    if (rule == UINT32_MAX)
        snprintf(text, size, "no rule");
    else if (policy->rule[rule].line == 0)
        snprintf(text, size, "%s", policy->source);
    else
        snprintf(text, size, "line %" PRIu32, policy->rule[rule].line);
    return text;
}

/* "MPI_COMM_WORLD: 64 ranks on 4 nodes, 16 on each; policy site.yaml" */
static char *format_comm(const struct question *q, char *text, size_t size)
{
    const struct collx_facts *facts = q->facts;
    char spread[COLLX_VALUE_MAX] = "";

    if (facts->nodes > 1 && facts->node_ranks_min == facts->node_ranks_max)
        snprintf(spread, sizeof spread, ", %d on each", facts->node_ranks_max);
    else if (facts->nodes > 1)
        snprintf(spread, sizeof spread, ", %d to %d on each", facts->node_ranks_min,
                 facts->node_ranks_max);
    snprintf(text, size, "%s: %d rank%s on %d node%s%s; policy %s",
             *q->comm_name ? q->comm_name : "a communicator without a name", facts->ranks,
             facts->ranks == 1 ? "" : "s", facts->nodes, facts->nodes == 1 ? "" : "s", spread,
             q->policy->source);
    return text;
}

/* Which candidate of a rule runs, and its text.  What no rule takes and what no candidate of a
 * rule can do is left to the MPI library. */
static uint32_t find_runner(const struct question *q, uint32_t rule, char *runs, size_t size)
{
    const struct collx_rule *at = rule == UINT32_MAX ? NULL : &q->policy->rule[rule];
    const struct collx_algorithm *algorithm;
    const struct collx_use *use;
    char why[COLLX_WHY_MAX];
    uint32_t i = 0;

    for (; at && (use = collx_rule_use(at, q->kind, i)); i++)
        if (collx_use_fits(at, use, q->facts, q->kind, q->refused, &algorithm, why, sizeof why) ==
            0) {
            format_use(use, q->kind, runs, size);
            return i;
        }
    snprintf(runs, size, "pmpi");
    return i;
}

/* Why the candidates before number `runner` of a rule do not run. */
static void say_reasons(const struct listener *to, const char *indent, const struct question *q,
                        uint32_t rule, uint32_t runner)
{
    const struct collx_rule *at = &q->policy->rule[rule];
    const struct collx_algorithm *algorithm;
    char name[COLLX_WHY_MAX / 2], why[COLLX_WHY_MAX];

    for (uint32_t i = 0; i < runner; i++) {
        const struct collx_use *use = collx_rule_use(at, q->kind, i);

        collx_use_fits(at, use, q->facts, q->kind, q->refused, &algorithm, why, sizeof why);
        say(to, "%snot %s: %s", indent, format_use(use, q->kind, name, sizeof name), why);
    }
}

/* What `order: rank` makes of it, and who has what the first one does not take. */
static void say_rest(const struct listener *to, const char *indent,
                     const struct collx_choice *choice)
{
    char line[LINE / 2] = "";
    size_t length = 0;

    if (choice->rank_order)
        length = (size_t)snprintf(
            line, sizeof line, "%s%s",
            choice->candidates ? "in rank order" : "so not in rank order, which the rule demands",
            choice->candidates > 1 ? "; " : "");
    for (int i = 1; i < choice->candidates && length < sizeof line; i++)
        length += (size_t)snprintf(
            line + length, sizeof line - length,
            i == 1 ? "what %s does not take goes to %s" : ", and what %s does not take to %s",
            choice->candidate[i - 1].algorithm->name, choice->candidate[i].algorithm->name);
    if (length)
        say(to, "%s%s", indent, line);
}

static void explain_choice(const struct listener *to, const struct question *q,
                           const struct collx_choice *choice)
{
    char text[LINE / 2], bytes[2 * COLLX_VALUE_MAX], ops[256], rule[sizeof q->policy->source];
    uint32_t runner = find_runner(q, choice->rule, text, sizeof text);

    collx_range_format(COLLX_SIZE, &choice->bytes, 0, bytes, sizeof bytes);
    format_ops(choice->ops, ops, sizeof ops);
    format_rule(q->policy, choice->rule, rule, sizeof rule);
    say(to, "  %-20s %-12s %-10s %s", q->kind == COLLX_BARRIER ? "-" : bytes,
        collx_kind_reduces(q->kind) ? ops : "-", rule, text);
    if (choice->rule != UINT32_MAX)
        say_reasons(to, "      ", q, choice->rule, runner);
    say_rest(to, "      ", choice);
}

static void explain_all(const struct listener *to, const struct question *q)
{
    char text[LINE / 2];
    /* Not on the stack, of which a thread that calls a collective may have little. */
    struct collx_choice *choices = calloc(CHOICES, sizeof *choices);
    int count = choices ? collx_policy_plan(q->policy, q->facts, q->comm_name, q->kind, q->refused,
                                            choices, CHOICES)
                        : -ENOMEM;

    say(to, "%s on %s", collx_kind_name(q->kind), format_comm(q, text, sizeof text));
    if (count < 0)
        say(to, "  %s; ask `collx policy explain` about one size",
            count == -E2BIG ? "too many choices to show" : "no memory to show who decides what");
    else
        say(to, "  %-20s %-12s %-10s %s", "bytes", "op", "rule", "runs");
    for (int i = 0; i < count; i++)
        explain_choice(to, q, &choices[i]);
    free(choices);
}

/* Whether a rule is for another call than this, and why. */
static bool passes_over(const struct question *q, const struct collx_rule *rule, int64_t bytes,
                        enum collx_op op, char *why, size_t size)
{
    char text[2 * COLLX_VALUE_MAX], value[COLLX_VALUE_MAX];

    if (collx_rule_fits(rule, q->facts, q->comm_name, q->kind, why, size))
        return true;
    if (!collx_range_has(&rule->bytes, bytes)) {
        snprintf(why, size, "bytes: %s is not in %s",
                 collx_value_format(COLLX_SIZE, bytes, value, sizeof value),
                 collx_range_format(COLLX_SIZE, &rule->bytes, 0, text, sizeof text));
        return true;
    }
    if (!(rule->ops >> op & 1)) {
        if (op == COLLX_OP_NONE)
            snprintf(why, size, "op: %s has none", collx_kind_name(q->kind));
        else
            snprintf(why, size, "op: not for %s", collx_op_name(op));
        return true;
    }
    return false;
}

static void explain_one(const struct listener *to, const struct question *q, int64_t bytes,
                        enum collx_op op)
{
    char text[LINE / 2], why[COLLX_WHY_MAX], name[sizeof q->policy->source];
    const struct collx_policy *policy = q->policy;
    const struct collx_use *use;
    uint32_t rule = 0;

    format_comm(q, text, sizeof text);
    collx_value_format(COLLX_SIZE, bytes, why, sizeof why);
    if (q->kind == COLLX_BARRIER)
        say(to, "%s on %s", collx_kind_name(q->kind), text);
    else if (op == COLLX_OP_NONE)
        say(to, "%s of %s on %s", collx_kind_name(q->kind), why, text);
    else
        say(to, "%s of %s, op %s, on %s", collx_kind_name(q->kind), why, collx_op_name(op), text);

    for (; rule < policy->rules; rule++) {
        if (!passes_over(q, &policy->rule[rule], bytes, op, why, sizeof why))
            break;
        say(to, "  passed  %s: %s", format_rule(policy, rule, name, sizeof name), why);
    }
    if (rule == policy->rules) {
        say(to, "  rule    none matches");
        say(to, "  runs    pmpi");
        return;
    }
    say(to, "  rule    %s", format_rule(policy, rule, name, sizeof name));
    uint32_t runner = find_runner(q, rule, text, sizeof text);
    say(to, "  runs    %s", text);
    say_reasons(to, "          ", q, rule, runner);
    for (uint32_t i = runner + 1; (use = collx_rule_use(&policy->rule[rule], q->kind, i)); i++)
        say(to, "          not %s: %s comes first", format_use(use, q->kind, why, sizeof why),
            text);
    struct collx_choice choice = {.rule = rule};
    collx_choice_decide(&choice, policy, q->facts, q->kind, q->refused);
    say_rest(to, "          ", &choice);
}

void collx_policy_explain(const struct collx_policy *policy, const struct collx_facts *facts,
                          const char *comm_name, enum collx_kind kind,
                          const struct collx_refused *refused, int64_t bytes, enum collx_op op,
                          void (*emit)(void *ctx, const char *line), void *ctx)
{
    struct listener to = {emit, ctx};
    struct question q = {policy, facts, comm_name, kind, refused};

    if (bytes < 0)
        explain_all(&to, &q);
    else
        explain_one(&to, &q, kind == COLLX_BARRIER ? 0 : bytes,
                    collx_kind_reduces(kind) ? op : COLLX_OP_NONE);
}
