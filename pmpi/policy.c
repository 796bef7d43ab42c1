#include "pmpi/policy.h"

#include "base/error.h"
#include "base/log.h"
#include "base/options.h"
#include "pmpi/pmpi.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const struct collx_policy *own;

static void report(void *ctx, const char *message)
{
    (void)ctx;
    collx_warn("%s", message);
}

/* Its YAML reader is a library of its own, so that only processes that read a policy load it. */
static int read_file(const char *path, struct collx_policy *policy)
{
    char library[4096];

    snprintf(library, sizeof library, "%s/libcollx-policy.so", collx_door.dir);
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    collx_policy_read_fn *read =
        handle ? (collx_policy_read_fn *)dlsym(handle, COLLX_POLICY_READ) : NULL;
    if (!read) {
        collx_warn("cannot load what reads policies: %s. It belongs beside libcollx.so, and needs "
                   "libfyaml",
                   dlerror());
        return COLLX_EINVALID;
    }
    return read(path, policy, report, NULL);
}

static const struct collx_policy *load(void)
{
    const char *path = collx_option_text(COLLX_OPTION_POLICY);
    struct collx_policy *policy;

    if (!*path)
        return collx_policy_builtin();
    policy = calloc(1, sizeof *policy);
    if (!policy || read_file(path, policy)) {
        collx_warn("the built-in policy is used instead of %s. 'collx policy check' tells when it "
                   "is right",
                   path);
        free(policy);
        return collx_policy_builtin();
    }
    collx_policy_apply_options(policy);
    return policy;
}

const struct collx_policy *collx_policy_own(void)
{
    pthread_mutex_lock(&lock);
    if (!own)
        own = load();
    const struct collx_policy *policy = own;
    pthread_mutex_unlock(&lock);
    return policy;
}

void collx_policy_adopt(const struct collx_policy *policy)
{
    pthread_mutex_lock(&lock);
    if (!own && policy == collx_policy_builtin()) {
        own = policy;
    } else if (!own) {
        struct collx_policy *copy = malloc(sizeof *copy);
        if (copy) {
            *copy = *policy;
            collx_policy_apply_options(copy);
            own = copy;
        }
    }
    pthread_mutex_unlock(&lock);
}
