/* collx-simulate: how long the barriers between nodes take in a model, as a table or CSV. */
#include "bench/simulate.h"

#include "base/parse.h"

#include <argp.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BARRIERS_MOST = 16, NODES_MOST = 1 << 24 };
/* Flags of a barrier: some minutes. */
#define FLAGS_MOST 1e10
/* Nodes up to which every fan is tried. */
#define BEST_OF_ALL 256
/* What else than a number can be asked for as a fan. */
enum { FAN_DEFAULT = 0, FAN_ALL = -1, FAN_BEST = -2 };

/* Visible, or glibc would go on with its own, empty one. */
__attribute__((visibility("default"))) const char *argp_program_version =
    "collx-simulate " COLLX_RELEASE;

struct barrier {
    const char *text;
    bool hsb, exchange;
    int fan[2]; /* in, out; n is both */
};

struct result {
    struct collx_pattern pattern;
    struct collx_cost cost;
};

static struct {
    struct barrier barrier[BARRIERS_MOST];
    int barriers;
    struct collx_range nodes, fans;
    int64_t times;
    bool sweep, csv;
    struct collx_model model;
} options = {.nodes = {2, 64}};

static void init(struct collx_pattern *pattern, const struct barrier *barrier, int nodes, int in,
                 int out)
{
    if (barrier->hsb)
        collx_hsb(pattern, nodes, in, out);
    else if (barrier->exchange)
        collx_nx_exchange(pattern, nodes, in);
    else
        collx_nx_dissemination(pattern, nodes, in);
}

static void no_memory(int nodes)
{
    fprintf(stderr, "collx-simulate: not enough memory for %d nodes\n", nodes);
    exit(1);
}

static void simulate(struct result *result)
{
    if (collx_simulate(&result->pattern, &options.model, &result->cost))
        no_memory(result->pattern.nodes);
}

/* What node 0 has to do takes that long, if it never has to wait. */
static double least(const struct collx_pattern *pattern)
{
    const struct collx_model *model = &options.model;
    struct collx_crossing *flags = malloc((size_t)pattern->width * sizeof *flags);
    double us = model->call;

    if (!flags)
        no_memory(pattern->nodes);
    for (int round = 0; round < pattern->rounds; round++) {
        int writes = pattern->writes(pattern, 0, round, flags);
        int waits = pattern->waits(pattern, 0, round, flags);
        us += (writes ? model->check : 0) + writes * (model->write + model->covered) +
              waits * model->poll;
    }
    free(flags);
    return us;
}

/* Where flags cost next to nothing the best fan is one of thousands, and to simulate it for
 * millions of nodes takes days. */
static void refuse_long(const struct collx_pattern *pattern, const char *text, int fan)
{
    if ((double)pattern->nodes * pattern->rounds * pattern->width < FLAGS_MOST)
        return;
    fprintf(
        stderr,
        "collx-simulate: '%s': flags cost so little that with %d nodes a fan of %d may be best, "
        "which takes too long to find out; raise --write, --covered or --poll, take fewer "
        "nodes, or ask for a number instead of 'best'\n",
        text, pattern->nodes, fan);
    exit(1);
}

/* Every fan is worth a try, as long as writing and polling that many flags does not take longer
 * than the best barrier; of many nodes, which take long, the smallest for each number of rounds.
 * What there is by default is nearly that.
 */
static void find_best(struct result *best, const struct barrier *barrier, int nodes)
{
    double flag = options.model.write + options.model.covered + options.model.poll;
    struct result result, smaller;

    init(&best->pattern, barrier, nodes, FAN_DEFAULT, FAN_DEFAULT);
    simulate(best);
    int fan = (nodes - 1) * flag < best->cost.us ? nodes : (int)(best->cost.us / flag) + 1;
    for (init(&smaller.pattern, barrier, nodes, fan, fan); fan >= 2; fan--) {
        result = smaller;
        init(&smaller.pattern, barrier, nodes, fan - 1, fan - 1);
        bool spared =
            nodes > BEST_OF_ALL && fan > 2 && smaller.pattern.rounds == result.pattern.rounds;
        if (spared || least(&result.pattern) > best->cost.us)
            continue;
        refuse_long(&result.pattern, barrier->text, fan);
        simulate(&result);
        if (result.cost.us <= best->cost.us)
            *best = result;
    }
}

static int fan_of(int fan, int nodes, int swept)
{
    return fan == FAN_ALL ? nodes : fan == FAN_DEFAULT && options.sweep ? swept : fan;
}

static void run(struct result *result, const struct barrier *barrier, int nodes, int swept)
{
    if (barrier->fan[0] == FAN_BEST) {
        find_best(result, barrier, nodes);
        return;
    }
    init(&result->pattern, barrier, nodes, fan_of(barrier->fan[0], nodes, swept),
         fan_of(barrier->fan[1], nodes, swept));
    simulate(result);
}

static void print_title(void)
{
    if (options.csv) {
        puts("nodes,fan,barrier,fan_in,fan_out,us,rounds,writes,checks");
        return;
    }
    puts("Microseconds that a barrier takes in the model\n");
    printf("%8s", "nodes");
    if (options.sweep)
        printf(" %6s", "fan");
    for (int b = 0; b < options.barriers; b++)
        printf("  %12s", options.barrier[b].text);
    putchar('\n');
}

static void print_row(int nodes, int swept)
{
    if (!options.csv)
        printf("%8d", nodes);
    if (options.sweep && !options.csv)
        printf(" %6d", swept);
    for (int b = 0; b < options.barriers; b++) {
        const struct barrier *barrier = &options.barrier[b];
        struct result result;
        run(&result, barrier, nodes, swept);
        const struct collx_cost *cost = &result.cost;
        int n = result.pattern.nx.n;
        const int *fan = barrier->hsb ? result.pattern.hsb.fan : (int[]){n, n};
        if (options.csv)
            printf("%d,%d,\"%s\",%d,%d,%.3f,%d,%d,%d\n", nodes, options.sweep ? swept : 0,
                   barrier->text, fan[0], fan[1], cost->us, cost->rounds, cost->writes,
                   cost->checks);
        else
            printf("  %*.2f", (int)fmax(12, (double)strlen(barrier->text)), cost->us);
    }
    if (!options.csv)
        putchar('\n');
    fflush(stdout);
}

static int parse_fan(const char *text, struct argp_state *state)
{
    char why[COLLX_WHY_MAX];
    int64_t fan;

    if (!strcmp(text, "all"))
        return FAN_ALL;
    if (!strcmp(text, "best"))
        return FAN_BEST;
    if (collx_value_parse(COLLX_NUMBER, text, 2, NODES_MOST, &fan, why, sizeof why))
        argp_error(state, "%s; or 'all' or 'best'", why);
    return (int)fan;
}

static bool parse_parameter(struct barrier *barrier, const char *name, const char *value,
                            struct argp_state *state)
{
    if (!strcmp(name, barrier->hsb ? "f" : "n"))
        barrier->fan[0] = barrier->fan[1] = parse_fan(value, state);
    else if (barrier->hsb && !strcmp(name, "f_in"))
        barrier->fan[0] = parse_fan(value, state);
    else if (barrier->hsb && !strcmp(name, "f_out"))
        barrier->fan[1] = parse_fan(value, state);
    else if (!barrier->hsb && !strcmp(name, "mode") &&
             (!strcmp(value, "exchange") || !strcmp(value, "dissemination")))
        barrier->exchange = !strcmp(value, "exchange");
    else
        return false;
    return true;
}

/* "nx", "hsb,f_in=8,f_out=4" */
static void parse_barrier(const char *text, struct argp_state *state)
{
    struct barrier barrier = {.text = text};
    char *copy = strdup(text), *keep = NULL, *word;

    if (!copy)
        argp_failure(state, 1, 0, "not enough memory");
    word = strtok_r(copy, ",", &keep);
    barrier.hsb = word && !strcmp(word, "hsb");
    if (!word || (!barrier.hsb && strcmp(word, "nx")) || strpbrk(text, "\"\n"))
        argp_error(state, "'%s': barriers are nx and hsb, such as nx,n=6 or hsb,f=8", text);
    while ((word = strtok_r(NULL, ",", &keep))) {
        char *value = strchr(word, '=');
        if (value)
            *value++ = '\0';
        if (!value || !parse_parameter(&barrier, word, value, state))
            argp_error(state,
                       "'%s': there are n and mode=exchange|dissemination for nx, and f, "
                       "f_in and f_out for hsb",
                       text);
    }
    if ((barrier.fan[0] == FAN_BEST) != (barrier.fan[1] == FAN_BEST))
        argp_error(state, "'%s': only f=best, of both fans, can be looked for", text);
    if (options.barriers == BARRIERS_MOST)
        argp_error(state, "no more than %d barriers at once", BARRIERS_MOST);
    options.barrier[options.barriers++] = barrier;
    free(copy);
}

static double *const parameters[] = {
    &options.model.write,   &options.model.check, &options.model.covered,
    &options.model.latency, &options.model.poll,  &options.model.call,
};
enum { KEY_CSV = 1000, KEY_MODEL, KEY_MODEL_END = KEY_MODEL + 6 };

static void parse_time(double *us, const char *text, struct argp_state *state)
{
    char *end;

    *us = strtod(text, &end);
    if (end == text || *end || !(*us >= 0 && *us < 1e9))
        argp_error(state, "'%s' is not a number of microseconds", text);
}

static void parse_range(struct collx_range *range, const char *text, int64_t least,
                        struct argp_state *state)
{
    char why[COLLX_WHY_MAX];

    if (collx_range_parse(COLLX_NUMBER, text, least, range, why, sizeof why))
        argp_error(state, "%s", why);
    if (range->last > NODES_MOST)
        argp_error(state, "'%s': it has to end at %d or before", text, NODES_MOST);
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
    char why[COLLX_WHY_MAX];

    switch (key) {
    case 'N':
        parse_range(&options.nodes, argument, 1, state);
        return 0;
    case 'x':
        if (collx_value_parse(COLLX_NUMBER, argument, 2, NODES_MOST, &options.times, why,
                              sizeof why))
            argp_error(state, "%s", why);
        return 0;
    case 'f':
        parse_range(&options.fans, argument, 2, state);
        options.sweep = true;
        return 0;
    case KEY_CSV:
        options.csv = true;
        return 0;
    case ARGP_KEY_ARG:
        parse_barrier(argument, state);
        return 0;
    case ARGP_KEY_END:
        if (options.barriers == 0) {
            parse_barrier("nx", state);
            parse_barrier("hsb", state);
        }
        return 0;
    default:
        if (key < KEY_MODEL || key >= KEY_MODEL_END)
            return ARGP_ERR_UNKNOWN;
        parse_time(parameters[key - KEY_MODEL], argument, state);
        return 0;
    }
}

static const struct argp_option known[] = {
    {"nodes", 'N', "RANGE", 0, "how many (2..64)", 1},
    {"times", 'x', "N", 0, "each number of nodes is N times the one before; else all are taken", 1},
    {"fans", 'f', "RANGE", 0, "a row for each of these as n, f, f_in or f_out that is not given",
     1},
    {"csv", KEY_CSV, NULL, 0,
     "CSV instead of a table, with the rounds, and the writes and checks of the node that has most",
     1},
    {NULL, 0, NULL, 0, "The model, in microseconds:", 2},
    {"write", KEY_MODEL, "US", 0, "that writing a flag holds the CPU (0.2)", 2},
    {"check", KEY_MODEL + 1, "US", 0,
     "that a check takes (3.8: store barrier and check; SISCI's default check takes 5.3)", 2},
    {"covered", KEY_MODEL + 2, "US", 0, "more for each write that a check covers (0.1)", 2},
    {"latency", KEY_MODEL + 3, "US", 0, "from the write until the flag can be seen (2)", 2},
    {"poll", KEY_MODEL + 4, "US", 0, "that it takes to see it (0.05)", 2},
    {"call", KEY_MODEL + 5, "US", 0, "of a barrier besides (0.6)", 2},
    {NULL, 0, NULL, 0, "Help:", -1},
    {0}};

static const struct argp argp = {
    known,
    parse,
    "[BARRIER...]",
    "How long barriers between nodes take in a model of an SCI network.\v"
    "Barriers are nx[,n=N][,mode=exchange] and hsb[,f=N][,f_in=N][,f_out=N]; by default nx and hsb "
    "as they are without parameters. N may be 'all', for all nodes, or 'best', for the best "
    "in the model. For example\n"
    "  collx-simulate nx,n=2 nx,n=6 nx,n=all hsb,f=8\n"
    "  collx-simulate --nodes=1024..1024 --fans=2..32 --csv nx hsb",
    NULL,
    NULL,
    NULL};

int main(int argc, char **argv)
{
    options.model = collx_model_sci;
    argp_parse(&argp, argc, argv, 0, NULL, NULL);
    print_title();
    for (int64_t nodes = options.nodes.first; nodes <= options.nodes.last;
         nodes = options.times ? nodes * options.times : nodes + 1)
        for (int64_t fan = options.fans.first; fan <= options.fans.last; fan++)
            print_row((int)nodes, (int)fan);
    if (ferror(stdout) || fclose(stdout)) {
        fprintf(stderr, "collx-simulate: cannot write the figures: %s\n", strerror(errno));
        return 1;
    }
    return 0;
}
