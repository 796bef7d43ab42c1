#include "pmpi/policy.h"

#include "base/log.h"
#include "base/options.h"
#include "pmpi/agree.h"

#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const struct collx_policy *own;
static struct collx_policy held; /* what `own` is, unless that is the built-in one */

static void report(void *ctx, const char *message)
{
    (void)ctx;
    collx_warn("%s", message);
}

/* `read` is NULL where there is no reader. */
static const struct collx_policy *load(const char *path, collx_policy_read_fn *read,
                                       const char *why)
{
    if (!read)
        collx_warn("%s", why);
    if (!read || read(path, &held, report, NULL)) {
        collx_warn("the built-in policy is used instead of %s%s", path,
                   read ? ". 'collx policy check' tells when it is right" : "");
        return collx_policy_builtin();
    }
    collx_policy_apply_options(&held);
    return &held;
}

const struct collx_policy *collx_policy_own(void)
{
    const char *path = collx_option_text(COLLX_OPTION_POLICY);
    char why[4096 + 256] = "";

    pthread_mutex_lock(&lock);
    if (!own && !*path)
        own = collx_policy_builtin();
    if (!own) {
        /* Without our lock: a thread that loads a library holds the loader's, and its constructor
         * may be here, too. */
        pthread_mutex_unlock(&lock);
        collx_policy_read_fn *read =
            collx_policy_load_reader(collx_door.dir, "libcollx.so", why, sizeof why);
        pthread_mutex_lock(&lock);
        if (!own)
            own = load(path, read, why);
    }
    const struct collx_policy *policy = own;
    pthread_mutex_unlock(&lock);
    return policy;
}

/* Rank 0 has handed over this policy: it is this process's own from now on, unless it has one
 * already. */
static void adopt(const struct collx_policy *policy)
{
    pthread_mutex_lock(&lock);
    if (!own && policy == collx_policy_builtin()) {
        own = policy;
    } else if (!own) {
        held = *policy;
        collx_policy_apply_options(&held);
        own = &held;
    }
    pthread_mutex_unlock(&lock);
}

uint64_t collx_policy_bytes(const struct collx_policy *policy)
{
    return policy == collx_policy_builtin() ? 0 : collx_policy_size(policy);
}

int collx_policy_hand_over(struct collx_comm *comm, uint64_t bytes,
                           const struct collx_policy **policy, struct collx_policy *received)
{
    int error = 0;

    if (comm->rank != 0)
        *policy = bytes ? received : collx_policy_builtin();
    if (bytes)
        error = collx_agree_from_zero(comm, (void *)(uintptr_t)*policy, bytes);
    if (!error && comm->rank != 0)
        adopt(*policy);
    return error;
}
