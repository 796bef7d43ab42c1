#include "base/error.h"
#include "base/folder.h"
#include "base/options.h"
#include "group/state.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct collx_policy *collx_group_policy_builtin(void)
{
    static const struct collx_policy builtin = {
        .version = COLLX_POLICY_VERSION,
        .rules = 1,
        .source = "built-in",
        /* Parameters of these are 0 where nothing is said. */
        .rule = {{COLLX_RULE_ANY, .uses = 3,
                  .use = {{.name = "shm"}, {.name = "nx"}, {.name = "ordered"}}}},
    };
    return &builtin;
}

/* Where reports go: the first of them. */
struct said {
    char *why;
    size_t size;
};

static void report(void *ctx, const char *message)
{
    struct said *said = ctx;

    if (said->size && !*said->why)
        snprintf(said->why, said->size, "%s", message);
}

/* What reads it lies beside this library. */
static int read_file(const char *path, struct collx_policy *policy, char *why, size_t size)
{
    struct said said = {why, size};
    char folder[PATH_MAX];

    collx_folder_of((void *)collx_group_create, folder, sizeof folder);
    collx_policy_read_fn *read = collx_policy_load_reader(folder, "libcollx-group.so", why, size);
    if (!read)
        return COLLX_EINVALID;
    int error = read(path, policy, report, &said);
    if (error && said.size && !*why)
        snprintf(why, size, "%s: %s", path, strerror(error < 0 ? -error : 0));
    return error;
}

struct collx_policy *collx_group_policy_own(const struct collx_group *group, char *why, size_t size)
{
    const char *path =
        group->config.policy ? group->config.policy : collx_option_text(COLLX_OPTION_POLICY);
    struct collx_policy *policy = calloc(1, sizeof *policy);

    if (size)
        *why = '\0';
    if (!policy) {
        snprintf(why, size, "out of memory");
        return NULL;
    }
    if (!*path) {
        *policy = *collx_group_policy_builtin();
    } else if (read_file(path, policy, why, size)) {
        free(policy);
        return NULL;
    }
    return policy;
}
