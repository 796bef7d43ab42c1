/* Finds out which command was typed; the rest of the line belongs to that. */
#include "tools/tools.h"

#include "base/parse.h"

#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

struct finding {
    struct collx_typed *typed;
    const struct collx_command *commands;
    const char *question;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct finding *finding = state->input;
    struct collx_typed *typed = finding->typed;

    if (key == ARGP_KEY_NO_ARGS) {
        argp_error(state, "%s", finding->question);
        return EINVAL;
    }
    if (key != ARGP_KEY_ARG)
        return ARGP_ERR_UNKNOWN;
    for (const struct collx_command *c = finding->commands; c->name; c++)
        if (strcmp(arg, c->name) == 0) {
            typed->command = c;
            typed->argc = state->argc - state->next + 1;
            typed->argv = state->argv + state->next - 1;
            state->next = state->argc;
            return 0;
        }
    struct collx_nearest nearest = {.word = arg};
    char hint[COLLX_WHY_MAX];
    for (const struct collx_command *c = finding->commands; c->name; c++)
        collx_nearest_offer(&nearest, c->name);
    argp_error(state, "'%s' is not a command%s", arg,
               collx_nearest_hint(&nearest, hint, sizeof hint));
    return EINVAL;
}

void collx_typed_find(struct collx_typed *typed, const struct collx_command *commands,
                      const char *before, const char *question, const char *usage, const char *doc,
                      int argc, char **argv)
{
    const struct argp argp = {.parser = parse, .args_doc = usage, .doc = doc};
    struct finding finding = {typed, commands, question};

    argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &finding);
    snprintf(typed->name, sizeof typed->name, "%s %s", before, typed->command->name);
    typed->argv[0] = typed->name;
}
