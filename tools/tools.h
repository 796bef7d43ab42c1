/* Inside the `collx` command. */
#ifndef COLLX_TOOLS_H
#define COLLX_TOOLS_H

#include "policies/policy.h"

/* How a subcommand ends; also the command's exit code. */
enum { COLLX_EXIT_GOOD, COLLX_EXIT_BAD, COLLX_EXIT_USAGE = 64 };

/* A command by its name; the last one of a list has none. */
struct collx_command {
    const char *name;
    int (*main)(int argc, char **argv);
};

/* What was typed: pass argc and argv on to the command's main. */
struct collx_typed {
    const struct collx_command *command;
    int argc;
    char **argv;
    char name[64]; /* what argv[0] is then */
};

/* Which of the commands it is; what is wrong goes to stderr and ends the program, as --help does.
 * `before`: what was typed before the command, "collx policy". */
void collx_typed_find(struct collx_typed *typed, const struct collx_command *commands,
                      const char *before, const char *question, const char *usage, const char *doc,
                      int argc, char **argv);

/* Subcommands: argv[0] is what people typed so far, "collx info".  They return an exit code. */
int collx_hw_main(int argc, char **argv);
int collx_info_main(int argc, char **argv);
int collx_policy_main(int argc, char **argv);

/* Read a policy, errors to stderr.  0, or that it is wrong. */
int collx_load_policy(const char *path, struct collx_policy *policy);

/* The folder with libcollx.so: that of the tool itself in a build folder, else the one where
 * collx was installed, found from where the tool lies, so that an installation can be moved. */
const char *collx_library_folder(void);

/* Prints a line for each MPI adapter there: which MPI library it is for, and if it loads here. */
void collx_print_adapters(void);

#endif
