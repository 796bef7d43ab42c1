/* `collx`: everything that a person does by hand. */
#include "tools/tools.h"

#include "base/options.h"
#include "policies/read.h"

#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Visible, or glibc would go on with its own, empty one. */
__attribute__((visibility("default"))) const char *argp_program_version = "collx " COLLX_RELEASE;

static const struct command {
    const char *name;
    int (*main)(int argc, char **argv);
} commands[] = {
    {"info", collx_info_main},
    {"policy", collx_policy_main},
};

struct chosen {
    const struct command *command;
    int argc;
    char **argv;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct chosen *chosen = state->input;

    if (key == ARGP_KEY_ARG) {
        for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
            if (strcmp(arg, commands[i].name) == 0) {
                /* The rest belongs to the command. */
                chosen->command = &commands[i];
                chosen->argc = state->argc - state->next + 1;
                chosen->argv = state->argv + state->next - 1;
                state->next = state->argc;
                return 0;
            }
        struct collx_nearest nearest = {.word = arg};
        char hint[COLLX_WHY_MAX];
        for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
            collx_nearest_offer(&nearest, commands[i].name);
        argp_error(state, "'%s' is not a command%s", arg,
                   collx_nearest_hint(&nearest, hint, sizeof hint));
        return EINVAL;
    }
    if (key == ARGP_KEY_NO_ARGS) {
        argp_error(state, "which command?");
        return EINVAL;
    }
    return ARGP_ERR_UNKNOWN;
}

static void print_line(void *ctx, const char *line)
{
    (void)ctx;
    fprintf(stderr, "%s\n", line);
}

int collx_load_policy(const char *path, struct collx_policy *policy)
{
    return collx_policy_read(path, policy, print_line, NULL) ? COLLX_EXIT_BAD : COLLX_EXIT_GOOD;
}

static void warn(const char *message)
{
    fprintf(stderr, "collx: %s\n", message);
}

int main(int argc, char **argv)
{
    static const char doc[] =
        "What collx can do here, and what a policy makes of it.\v"
        "Commands:\n"
        "  info             options, algorithms and MPI adapters\n"
        "  policy check     whether policy files are right\n"
        "  policy explain   which rule decides about a call, what runs, and why\n"
        "\n"
        "`collx COMMAND --help` says more about each.  To run a program with collx:\n"
        "  LD_PRELOAD=libcollx.so mpirun -n 8 ./app\n";
    static const struct argp argp = {.parser = parse, .args_doc = "COMMAND ...", .doc = doc};
    struct chosen chosen = {.command = NULL};
    char name[64];

    if (argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &chosen))
        return COLLX_EXIT_USAGE;
    snprintf(name, sizeof name, "collx %s", chosen.command->name);
    chosen.argv[0] = name;
    collx_options_load(environ, warn);
    int code = chosen.command->main(chosen.argc, chosen.argv);
    if (fflush(stdout) || ferror(stdout)) {
        perror("collx: cannot write");
        return COLLX_EXIT_BAD;
    }
    return code;
}
