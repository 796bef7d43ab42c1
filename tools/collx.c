/* `collx`: everything that a person does by hand. */
#include "tools/tools.h"

#include "base/options.h"
#include "policies/read.h"

#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Visible, or glibc would go on with its own, empty one. */
__attribute__((visibility("default"))) const char *argp_program_version = "collx " COLLX_RELEASE;

static const struct collx_command commands[] = {
    {"hw", collx_hw_main}, {"info", collx_info_main}, {"policy", collx_policy_main}, {NULL, NULL}};

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
        "  hw probe         ports for the hardware barrier, and how fast they are\n"
        "  hw test          whether a port, a cable and the board work\n"
        "  hw free          take a channel of the board back from a dead job\n"
        "  info             options, algorithms and MPI adapters\n"
        "  policy check     whether policy files are right\n"
        "  policy explain   which rule decides about a call, what runs, and why\n"
        "\n"
        "`collx COMMAND --help` says more about each.  To run a program with collx:\n"
        "  LD_PRELOAD=libcollx.so mpirun -n 8 ./app\n";
    struct collx_typed typed;

    collx_typed_find(&typed, commands, "collx", "which command?", "COMMAND ...", doc, argc, argv);
    collx_options_load(environ, warn);
    int code = typed.command->main(typed.argc, typed.argv);
    if (fflush(stdout) || ferror(stdout)) {
        perror("collx: cannot write");
        return COLLX_EXIT_BAD;
    }
    return code;
}
