#include "policies/policy.h"

#include "base/algorithm.h"
#include "base/hash.h"
#include "base/options.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

_Static_assert(sizeof(struct collx_use) % 8 == 0 && sizeof(struct collx_rule) % 8 == 0 &&
                   offsetof(struct collx_policy, rule) % 8 == 0,
               "a policy travels as bytes, so it has no holes that differ between compilers");

size_t collx_policy_size(const struct collx_policy *policy)
{
    return offsetof(struct collx_policy, rule) + policy->rules * sizeof policy->rule[0];
}

bool collx_policy_orders(const struct collx_policy *policy)
{
    bool orders = false;

    for (uint32_t r = 0; r < policy->rules; r++)
        orders |= policy->rule[r].order != COLLX_ORDER_ANY;
    return orders;
}

static bool may_send(const char *name)
{
    bool may = false;

    for (int kind = 0; kind < COLLX_ROUTED; kind++) {
        const struct collx_algorithm *algorithm = collx_algorithm_find((enum collx_kind)kind, name);
        may = may || (algorithm && algorithm->connect);
    }
    return may;
}

bool collx_policy_sends(const struct collx_policy *policy)
{
    bool sends = collx_policy_orders(policy);

    for (uint32_t r = 0; r < policy->rules; r++)
        for (uint32_t i = 0; i < policy->rule[r].uses; i++)
            sends = sends || may_send(policy->rule[r].use[i].name);
    return sends;
}

const struct collx_policy *collx_policy_builtin(void)
{
    static const struct collx_policy builtin = {
        .version = COLLX_POLICY_VERSION,
        .rules = 1,
        .source = "built-in",
        .rule = {{COLLX_RULE_ANY, .uses = 2, .use = {{.name = "shm"}, {.name = "pmpi"}}}},
    };
    return &builtin;
}

/* What it says of an option; NULL: nothing. */
static const char *value_of(const struct collx_policy *policy, const char *word)
{
    for (uint32_t i = 0; i < policy->options; i++)
        if (strcmp(policy->option[i].word, word) == 0)
            return policy->option[i].value;
    return NULL;
}

void collx_policy_apply_options(const struct collx_policy *policy)
{
    char why[COLLX_WHY_MAX]; /* nothing can be: the reader has checked them */

    /* One by one, not all undone first: another thread may apply the same policy just now, and sees
     * no value then that neither of them asks for. */
    for (unsigned id = 0; id < COLLX_OPTIONS; id++) {
        const char *word = collx_option_describe(id)->word, *value = value_of(policy, word);
        if (value)
            collx_option_set(word, value, why, sizeof why);
        else
            collx_option_unset(id);
    }
}

uint64_t collx_policy_version(void)
{
    const uint32_t layout[] = {COLLX_POLICY_VERSION, sizeof(struct collx_policy)};

    return collx_hash(collx_algorithms_hash(), layout, sizeof layout);
}

collx_policy_read_fn *collx_policy_load_reader(const char *folder, const char *library, char *why,
                                               size_t size)
{
    char path[PATH_MAX + 32];

    snprintf(path, sizeof path, "%s/libcollx-policy.so", folder);
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const struct collx_policy_reader *reader = handle ? dlsym(handle, "collx_policy_reader") : NULL;

    if (!reader) {
        snprintf(why, size,
                 "cannot load what reads policies: %s. It belongs beside %s, and needs libfyaml",
                 dlerror(), library);
        return NULL;
    }
    if (reader->version() != collx_policy_version()) {
        snprintf(why, size, "%s is not of the same version as %s; install both from one release",
                 path, library);
        dlclose(handle);
        return NULL;
    }
    return reader->read;
}
