/* `collx policy check` and `collx policy explain` */
#include "tools/tools.h"

#include "base/options.h"

#include <argp.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int check(int argc, char **argv)
{
    static const struct argp argp = {
        .args_doc = "FILE...",
        .doc = "Say whether policy files are right; what is wrong goes to stderr as "
               "file:line:column: what is wrong; what would be right.  The exit code is 0 if all "
               "are right, else 1."};
    static struct collx_policy policy;
    int first, code = COLLX_EXIT_GOOD;

    argp_parse(&argp, argc, argv, 0, &first, NULL);
    if (first == argc) {
        fprintf(stderr, "%s: which FILE?  Try `%s --help'.\n", argv[0], argv[0]);
        return COLLX_EXIT_USAGE;
    }
    for (int i = first; i < argc; i++) {
        if (collx_load_policy(argv[i], &policy))
            code = COLLX_EXIT_BAD;
        else
            printf("%s: right, %" PRIu32 " rule%s\n", argv[i], policy.rules,
                   policy.rules == 1 ? "" : "s");
    }
    return code;
}

struct question {
    const char *file, *comm;
    unsigned kinds; /* 1 << enum collx_kind */
    int64_t ranks, nodes, bytes;
    enum collx_op op;
};

enum { COLLECTIVE = 1, RANKS, NODES, BYTES, OP, COMM };

static int64_t number(struct argp_state *state, const char *name, enum collx_type type,
                      const char *text, int64_t min, int64_t max)
{
    char why[COLLX_WHY_MAX];
    int64_t value = min;

    if (collx_value_parse(type, text, min, max, &value, why, sizeof why))
        argp_error(state, "--%s: %s", name, why);
    return value;
}

/* Which of the first `count` names, from `least` on, a word is; else an error with those names. */
static unsigned word(struct argp_state *state, const char *option, const char *text,
                     const char *(*name)(unsigned), unsigned least, unsigned count)
{
    struct collx_nearest nearest = {.word = text};
    char hint[COLLX_WHY_MAX];

    for (unsigned i = least; i < count; i++) {
        if (strcmp(text, name(i)) == 0)
            return i;
        collx_nearest_offer(&nearest, name(i));
    }
    argp_error(state, "--%s: there is no '%s'%s", option, text,
               collx_nearest_hint(&nearest, hint, sizeof hint));
    return least;
}

static error_t parse_question(int key, char *arg, struct argp_state *state)
{
    struct question *q = state->input;

    switch (key) {
    case COLLECTIVE:
        q->kinds = 1u << word(state, "collective", arg, collx_kind_name, 0, COLLX_ROUTED);
        return 0;
    case RANKS:
        q->ranks = number(state, "ranks", COLLX_NUMBER, arg, 1, INT32_MAX);
        return 0;
    case NODES:
        q->nodes = number(state, "nodes", COLLX_NUMBER, arg, 1, INT32_MAX);
        return 0;
    case BYTES:
        q->bytes = number(state, "bytes", COLLX_SIZE, arg, 0, INT64_MAX);
        return 0;
    case OP:
        q->op = word(state, "op", arg, collx_op_name, COLLX_OP_NONE + 1, COLLX_OP_COUNT);
        return 0;
    case COMM:
        q->comm = arg;
        return 0;
    case ARGP_KEY_ARG:
        if (q->file)
            argp_error(state, "one FILE at a time; '%s' is one more", arg);
        q->file = arg;
        return 0;
    case ARGP_KEY_END:
        if (q->bytes >= 0 && q->kinds == 1u << COLLX_BARRIER)
            argp_error(state, "--bytes: a barrier has none");
        if (q->op != COLLX_OP_NONE && !(q->kinds >> COLLX_ALLREDUCE & 1))
            argp_error(state, "--op: allreduce alone has an operation");
        if (q->op != COLLX_OP_NONE && q->bytes < 0)
            argp_error(state, "--op needs --bytes; without them the table is of all operations");
        if (q->op == COLLX_OP_NONE)
            q->op = COLLX_OP_SUM;
        if (q->ranks < q->nodes)
            argp_error(state,
                       "%" PRId64 " ranks cannot be on %" PRId64 " nodes; give more --ranks, or "
                       "fewer --nodes",
                       q->ranks, q->nodes);
        return 0;
    }
    return ARGP_ERR_UNKNOWN;
}

/* What a policy names for a collective, and this machine has not. */
static void look(const struct collx_policy *policy, enum collx_kind kind,
                 struct collx_refused *refused)
{
    for (uint32_t rule = 0; rule < policy->rules; rule++)
        for (uint32_t i = 0; i < policy->rule[rule].uses; i++) {
            const struct collx_use *use = &policy->rule[rule].use[i];
            const struct collx_algorithm *algorithm = collx_algorithm_find(kind, use->name);

            if (!algorithm || !algorithm->look || refused->uses == COLLX_REFUSED_MAX ||
                !algorithm->look(refused->use[refused->uses].why, COLLX_WHY_MAX))
                continue;
            refused->use[refused->uses].algorithm = algorithm;
            refused->use[refused->uses++].args = use->args[kind];
        }
}

static void print_line(void *ctx, const char *line)
{
    (void)ctx;
    puts(line);
}

static int explain(int argc, char **argv)
{
    static const struct argp_option options[] = {
        {"collective", COLLECTIVE, "NAME", 0, "barrier, bcast or allreduce (default: all)", 0},
        {"ranks", RANKS, "N", 0, "Ranks of the communicator (default: 2)", 0},
        {"nodes", NODES, "N", 0, "Nodes that they are on, as evenly as possible (default: 1)", 0},
        {"bytes", BYTES, "SIZE", 0,
         "Size of the call, such as 8 or 64KiB; without it a table of all sizes", 0},
        {"op", OP, "NAME", 0, "Operation of the reduction, with --bytes (default: sum)", 0},
        {"comm", COMM, "NAME", 0, "Name of the communicator (default: MPI_COMM_WORLD)", 0},
        {0}};
    static const struct argp argp = {
        .options = options,
        .parser = parse_question,
        .args_doc = "[FILE]",
        .doc = "Say which rule of a policy decides about a call, what would run, and why each "
               "other candidate would not.  Without FILE it is the policy that a program would "
               "get here: that of COLLX_POLICY, else the built-in one.\v"
               "Ports to a hardware barrier are looked for on this machine.  Whether a shared "
               "segment can be set up is only known in a job: "
               "COLLX_VERBOSE=1 prints the same table there."};
    static struct collx_policy policy;
    struct question q = {.comm = "MPI_COMM_WORLD",
                         .kinds = (1u << COLLX_ROUTED) - 1,
                         .ranks = 2,
                         .nodes = 1,
                         .bytes = -1,
                         .op = COLLX_OP_NONE};

    argp_parse(&argp, argc, argv, 0, NULL, &q);
    if (!q.file && *collx_option_text(COLLX_OPTION_POLICY))
        q.file = collx_option_text(COLLX_OPTION_POLICY);
    if (q.file && collx_load_policy(q.file, &policy))
        return COLLX_EXIT_BAD;

    struct collx_facts facts = {.ranks = (int)q.ranks,
                                .nodes = (int)q.nodes,
                                .node_ranks_min = (int)(q.ranks / q.nodes),
                                .node_ranks_max = (int)((q.ranks + q.nodes - 1) / q.nodes),
                                .numa_nodes = 1};
    const struct collx_policy *asked = q.file ? &policy : collx_policy_builtin();
    for (unsigned kind = 0; kind < COLLX_ROUTED; kind++) {
        static struct collx_refused refused;

        if (!(q.kinds >> kind & 1))
            continue;
        refused.uses = 0;
        look(asked, kind, &refused);
        collx_policy_explain(asked, &facts, q.comm, kind, &refused, q.bytes, q.op, print_line,
                             NULL);
    }
    return COLLX_EXIT_GOOD;
}

int collx_policy_main(int argc, char **argv)
{
    static const struct collx_command commands[] = {
        {"check", check}, {"explain", explain}, {NULL, NULL}};
    struct collx_typed typed;

    collx_typed_find(&typed, commands, "collx policy", "check or explain?",
                     "check FILE...\nexplain [FILE]",
                     "Check policies, or explain what one makes of a call.", argc, argv);
    return typed.command->main(typed.argc, typed.argv);
}
