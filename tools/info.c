/* `collx info`: the options, the algorithms, the machine and the MPI adapters. */
#include "tools/tools.h"

#include "algorithms/reduction/reduce.h"
#include "base/options.h"
#include "hw/cpus.h"
#include "hw/place.h"

#include <argp.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Text within `width` columns, broken at blanks, each line after `indent` of them. */
static void print_wrapped(const char *text, int indent, int width)
{
    while (*text) {
        int room = width - indent, length = (int)strlen(text);

        if (length > room) {
            length = room;
            while (length > 0 && text[length] != ' ')
                length--;
            if (length == 0)
                length = (int)strcspn(text, " ");
        }
        printf("%*s%.*s\n", indent, "", length, text);
        text += length;
        text += strspn(text, " ");
    }
}

static const char *show(enum collx_type type, int64_t number, const char *path, char *text,
                        size_t size)
{
    if (type == COLLX_PATH)
        snprintf(text, size, "%s", *path ? path : "not set");
    else
        collx_value_format(type, number, text, size);
    return text;
}

static const char *origin(enum collx_option_id id, const char *policy)
{
    switch (collx_option_origin(id)) {
    case COLLX_FROM_ENVIRONMENT:
        return "environment";
    case COLLX_FROM_POLICY:
        return policy;
    case COLLX_FROM_DEFAULT:
        break;
    }
    return "default";
}

/* "a whole number, from 0 to 2" */
static char *format_values(const struct collx_option *option, char *text, size_t size)
{
    char low[COLLX_VALUE_MAX], high[COLLX_VALUE_MAX];

    if (option->type == COLLX_PATH || collx_type_has_words(option->type))
        snprintf(text, size, "%s", collx_type_form(option->type));
    else
        snprintf(text, size, "%s, from %s to %s", collx_type_form(option->type),
                 collx_value_format(option->type, option->min, low, sizeof low),
                 collx_value_format(option->type, option->max, high, sizeof high));
    return text;
}

static void print_options(const char *policy)
{
    printf("Options\n");
    for (unsigned id = 0; id < COLLX_OPTIONS; id++) {
        const struct collx_option *option = collx_option_describe(id);
        char value[512], text[512];
        size_t length;

        printf(
            "  %s = %s  (%s)\n", option->variable,
            show(option->type, collx_option_number(id), collx_option_text(id), value, sizeof value),
            origin(id, policy));
        print_wrapped(option->help, 6, 78);
        format_values(option, text, sizeof text);
        length = strlen(text);
        length += (size_t)snprintf(text + length, sizeof text - length, "; default: %s",
                                   show(option->type, option->initial, "", value, sizeof value));
        if (option->in_policy)
            snprintf(text + length, sizeof text - length, "; in a policy: %s", option->word);
        print_wrapped(text, 6, 78);
    }
}

/* "6, from 2 to 64" or "notify (notify, exchange)" */
static void print_param_values(const struct collx_param *param)
{
    if (!param->words) {
        printf("%" PRId64 ", from %" PRId64 " to %" PRId64, param->initial, param->min, param->max);
        return;
    }
    printf("%s (", param->words[param->initial]);
    for (unsigned i = 0; param->words[i]; i++)
        printf("%s%s", i ? ", " : "", param->words[i]);
    printf(")");
}

/* "4 KiB for 2 ranks, 10 KiB for 8, 73 KiB for 64", of one node and with the parameters' initial
 * values. */
static void print_memory(const struct collx_algorithm *algorithm)
{
    static const int ranks[] = {2, 8, 64};
    struct collx_args args = {.value = {0}};

    for (unsigned p = 0; algorithm->params && algorithm->params[p].name; p++)
        args.value[p] = algorithm->params[p].initial;
    for (size_t i = 0; algorithm->space && i < sizeof ranks / sizeof *ranks; i++) {
        struct collx_facts facts = {
            .ranks = ranks[i], .nodes = 1, .node_ranks_min = ranks[i], .node_ranks_max = ranks[i]};
        printf("%s%zu KiB for %d%s", i ? ", " : "", (algorithm->space(&facts, &args) + 1023) / 1024,
               ranks[i], i ? "" : " ranks");
    }
    if (!algorithm->space)
        printf("none");
}

/* As small as can be, on one node or two: who cannot do this cannot run here at all. */
static bool runs_here(const struct collx_algorithm *algorithm, const struct collx_args *args,
                      char *text, size_t size)
{
    char why[COLLX_WHY_MAX];

    for (int nodes = 1; nodes <= 2; nodes++) {
        struct collx_facts facts = {
            .ranks = 2, .nodes = nodes, .node_ranks_min = 2 / nodes, .node_ranks_max = 2 / nodes};
        if (!algorithm->query || !algorithm->query(&facts, args, why, sizeof why)) {
            *text = 0;
            return !algorithm->look || !algorithm->look(text, size);
        }
        if (nodes == 1)
            snprintf(text, size, "%s", why);
    }
    return false;
}

static void print_algorithms(void)
{
    char kernels[COLLX_VALUE_MAX];

    printf("Algorithms\n");
    printf("  reductions: %s\n",
           collx_value_format(COLLX_KERNELS, collx_reduce_version(), kernels, sizeof kernels));
    for (unsigned i = 0; collx_algorithms[i]; i++) {
        const struct collx_algorithm *algorithm = collx_algorithms[i];
        const struct collx_param *param = algorithm->params;
        struct collx_args args = {.value = {0}};
        char text[COLLX_WHY_MAX];

        printf("  %s of %s\n", algorithm->name, collx_kind_name(algorithm->kind));
        print_wrapped(algorithm->help, 6, 78);
        printf("      needs: %s\n", algorithm->needs);
        printf("      memory: ");
        print_memory(algorithm);
        printf("\n");
        for (unsigned p = 0; param && param[p].name; p++) {
            args.value[p] = param[p].initial;
            printf("      %s = ", param[p].name);
            print_param_values(&param[p]);
            printf(": %s\n", param[p].help);
        }
        bool runs = runs_here(algorithm, &args, text, sizeof text);
        printf("      here: %s%s%s\n", runs ? "yes" : "no", *text ? ", " : "", text);
    }
}

/* What decides how ranks wait; a job may have other CPUs than this shell. */
static void print_cpus(void)
{
    struct collx_cpu_limit limits[16];
    int count = collx_cpus_limits("", 0, limits, sizeof limits / sizeof *limits);
    int64_t least = INT64_MAX;
    char text[24];
    cpu_set_t set;

    printf("CPUs\n  online: %ld\n", sysconf(_SC_NPROCESSORS_ONLN));
    if (!sched_getaffinity(0, sizeof set, &set))
        printf("  usable, by the affinity mask: %d\n", CPU_COUNT(&set));
    for (int i = 0; i < count; i++)
        least = limits[i].millicpus < least ? limits[i].millicpus : least;
    printf("  CPU time, by the quotas of cgroups: %s\n",
           count ? collx_cpus_format(least, text, sizeof text) : "no limit");
}

/* What decides who waits for whom. */
static void print_topology(void)
{
    const char *described = collx_option_text(COLLX_OPTION_TOPOLOGY);
    struct collx_machine machine;
    struct collx_place place;
    char why[COLLX_WHY_MAX];

    printf("Topology%s%s\n", *described ? " of " : "", described);
    if (collx_place_find(collx_library_folder(), described, 0, &machine, &place, why, sizeof why)) {
        printf("  not known: ");
        print_wrapped(why, 0, 78);
        return;
    }
    printf("  packages: %d, NUMA nodes: %d, last caches: %d, cores: %d, CPUs: %d\n",
           machine.packages, machine.numa_nodes, machine.caches, machine.cores, machine.cpus);
}

static void print_text(void)
{
    static struct collx_policy read;
    const char *path = collx_option_text(COLLX_OPTION_POLICY);
    const struct collx_policy *policy = collx_policy_builtin();

    if (*path && collx_load_policy(path, &read) == COLLX_EXIT_GOOD) {
        policy = &read;
        collx_policy_apply_options(policy);
    }
    printf("collx %s, policy %s\n\n", COLLX_RELEASE, policy->source);
    print_options(policy->source);
    printf("\n");
    print_algorithms();
    printf("\n");
    print_cpus();
    printf("\n");
    print_topology();
    printf("\n");
    collx_print_adapters();
}

/* In a table's cell a bar would be the end of it. */
static void print_cell(const char *text)
{
    for (; *text; text++)
        printf(*text == '|' ? "\\|" : "%c", *text);
}

static void print_markdown(void)
{
    printf(
        "# Options and algorithms\n\n"
        "Made by `collx info --format markdown`; do not edit.\n\n"
        "## Options\n\n"
        "A value comes from the environment, else from the policy's `options:` where a policy\n"
        "may set it, else it is the default. `collx info` shows what holds here and where it\n"
        "was set. A misspelt variable and a wrong value are reported, by rank 0 of "
        "MPI_COMM_WORLD,\n"
        "and count as not set; what names a device, a machine or a line's size is looked at where\n"
        "it is used. All ranks should have the same. Where they have not, and it matters, they\n"
        "agree: `COLLX_CHECK` and `COLLX_NODE_SIZE` of any rank count, and the least memory. With\n"
        "`COLLX_ENABLE=off` on some ranks the others wait for these in MPI_Init.\n"
        "In programs that have rights which their user has not (set-user-ID) paths count as not "
        "set.\n\n"
        "| variable | in a policy | values | default | what it does |\n"
        "| --- | --- | --- | --- | --- |\n");
    for (unsigned id = 0; id < COLLX_OPTIONS; id++) {
        const struct collx_option *option = collx_option_describe(id);
        char values[512], initial[COLLX_VALUE_MAX];

        printf("| `%s` | ", option->variable);
        if (option->in_policy)
            printf("`%s`", option->word);
        else
            printf("no");
        printf(" | %s", format_values(option, values, sizeof values));
        printf(" | %s | ", show(option->type, option->initial, "", initial, sizeof initial));
        print_cell(option->help);
        printf(" |\n");
    }
    printf("\n## Algorithms\n\n"
           "The words for `use:` in a [policy](policies.md). `pmpi`, the MPI library's own, is\n"
           "always there and always the last choice.\n\n"
           "| name | collective | parameters | needs | shared memory | what it is |\n"
           "| --- | --- | --- | --- | --- | --- |\n");
    for (unsigned i = 0; collx_algorithms[i]; i++) {
        const struct collx_algorithm *algorithm = collx_algorithms[i];
        const struct collx_param *param = algorithm->params;

        printf("| `%s` | %s | ", algorithm->name, collx_kind_name(algorithm->kind));
        for (unsigned p = 0; param && param[p].name; p++) {
            printf("%s`%s` = ", p ? "; " : "", param[p].name);
            print_param_values(&param[p]);
            printf(": ");
            print_cell(param[p].help);
        }
        printf("%s | ", param && param[0].name ? "" : "none");
        print_cell(algorithm->needs);
        printf(" | ");
        print_memory(algorithm);
        printf(" | ");
        print_cell(algorithm->help);
        printf(" |\n");
    }
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    bool *markdown = state->input;

    if (key == ARGP_KEY_ARG)
        argp_error(state, "'%s' is one word too many", arg);
    if (key != 'f')
        return ARGP_ERR_UNKNOWN;
    *markdown = strcmp(arg, "markdown") == 0;
    if (!*markdown && strcmp(arg, "text") != 0)
        argp_error(state, "--format: there is no '%s'; there are text and markdown", arg);
    return 0;
}

int collx_info_main(int argc, char **argv)
{
    static const struct argp_option options[] = {
        {"format", 'f', "FORMAT", 0, "text or markdown (default: text)", 0}, {0}};
    static const struct argp argp = {
        .options = options,
        .parser = parse,
        .doc =
            "List every option with its value and where that was set, every algorithm with "
            "what it needs and whether it can run here, the CPUs that are usable, the packages and "
            "caches of the machine, and the MPI adapters.\v"
            "--format markdown is the reference page of the documentation; it says nothing "
            "about this machine."};
    bool markdown = false;

    argp_parse(&argp, argc, argv, 0, NULL, &markdown);
    if (markdown)
        print_markdown();
    else
        print_text();
    return COLLX_EXIT_GOOD;
}
