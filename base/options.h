/* The options of collx, all from one table, base/options.def.
 *
 * A value comes from the environment, else from the policy's `options:`, else it is the default.
 */
#ifndef COLLX_OPTIONS_H
#define COLLX_OPTIONS_H

#include "base/parse.h"

enum collx_option_id {
#define OPTION(ID, word, ...) COLLX_OPTION_##ID,
#include "base/options.def"
#undef OPTION
    COLLX_OPTIONS,
};

enum collx_origin { COLLX_FROM_DEFAULT, COLLX_FROM_POLICY, COLLX_FROM_ENVIRONMENT };

/* A line of the table. */
struct collx_option {
    const char *variable; /* "COLLX_STALL" */
    const char *word;     /* "stall" */
    const char *help;
    enum collx_type type;
    bool in_policy; /* a policy may set it */
    int64_t initial, min, max;
};

const struct collx_option *collx_option_describe(enum collx_option_id id);

/* Read the environment; once, before any other call.  What is wrong there (a misspelt COLLX_…
 * variable, a value out of range) is passed to `report`, one message each, and counts as not set,
 * as does an empty variable.  COLLX_TEST_… belongs to the tests and is passed over.
 * `report` may be NULL. */
void collx_options_load(char *const *environment, void (*report)(const char *message));

/* Numbers, sizes (bytes), durations (milliseconds) and switches (0, 1). */
int64_t collx_option_number(enum collx_option_id id);
/* Paths; "" where not set.  Valid until the next collx_options_load(). */
const char *collx_option_text(enum collx_option_id id);
enum collx_origin collx_option_origin(enum collx_option_id id);

/* Whether a policy may say so: `word` is the option's name there.  0, or COLLX_EINVALID and what is
 * wrong, and what would be right, in `why`. */
int collx_option_check(const char *word, const char *value, char *why, size_t size);
/* The same, and do so, except where the environment has set it. */
int collx_option_set(const char *word, const char *value, char *why, size_t size);
/* Undo that. */
void collx_option_unset(enum collx_option_id id);

#endif
