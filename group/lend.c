/* What algorithms are lent.  Elements are bytes without gaps here, and at most 4 KiB: nobody has to
 * pack any, nor to make room for them as MPI would. */
#include "group/state.h"

#include <errno.h>
#include <stdlib.h>

_Static_assert((int)COLLX_GROUP_GATHER_MAX == (int)COLLX_GATHER_MAX, "what gather() is asked for");

static void progress(void *ctx)
{
    const struct collx_group *group = ctx;

    if (group->config.progress)
        group->config.progress(group->config.context);
}

static int reduce(void *ctx, const struct collx_call *call, const void *in, void *inout,
                  int64_t count)
{
    const struct collx_group_operation *operation =
        (const struct collx_group_operation *)call->op; /* NOLINT(performance-no-int-to-ptr) */

    (void)ctx;
    operation->combine(operation->context, in, inout, (size_t)count);
    return 0;
}

static int gather(void *ctx, const void *own, void *all, size_t bytes)
{
    const struct collx_group *group = ctx;

    return group->config.gather(group->config.context, own, all, bytes);
}

static int listen_for(void *ctx, int messages)
{
    struct collx_group *group = ctx;

    if (!group->config.transfer)
        return -ENOTSUP;
    if (messages <= group->messages)
        return 0;
    struct collx_group_message *more =
        realloc(group->message, (size_t)messages * sizeof *group->message);
    if (!more)
        return -ENOMEM;
    group->message = more;
    group->messages = messages;
    return 0;
}

static int transfer(void *ctx, const struct collx_message *messages, int count)
{
    const struct collx_group *group = ctx;

    for (int i = 0; i < count; i++)
        group->message[i] = (struct collx_group_message){messages[i].rank, messages[i].sends,
                                                         messages[i].data, messages[i].bytes};
    return group->config.transfer(group->config.context, group->message, count);
}

const struct collx_lender_ops collx_group_lent = {
    .prefix = "",
    .stall_advice = "",
    .progress = progress,
    .reduce = reduce,
    .gather = gather,
    .listen = listen_for,
    .transfer = transfer,
    .no_memory = -ENOMEM,
    .unreachable = -ENOTCONN,
};
