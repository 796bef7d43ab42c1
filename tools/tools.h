/* Inside the `collx` command. */
#ifndef COLLX_TOOLS_H
#define COLLX_TOOLS_H

#include "policies/policy.h"

/* How a subcommand ends; also the command's exit code. */
enum { COLLX_EXIT_GOOD, COLLX_EXIT_BAD, COLLX_EXIT_USAGE = 64 };

/* Subcommands: argv[0] is what people typed so far, "collx info".  They return an exit code. */
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
