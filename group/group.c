#include "group/group.h"

#include "algorithms/allreduce/allreduce.h"
#include "algorithms/between/seg_retired.h"
#include "algorithms/reduction/reduce.h"
#include "base/log.h"
#include "base/options.h"
#include "base/process.h"
#include "group/state.h"
#include "hw/shm.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const enum collx_elem elems[] = {
    [COLLX_GROUP_I8] = COLLX_ELEM_I8,   [COLLX_GROUP_I16] = COLLX_ELEM_I16,
    [COLLX_GROUP_I32] = COLLX_ELEM_I32, [COLLX_GROUP_I64] = COLLX_ELEM_I64,
    [COLLX_GROUP_U8] = COLLX_ELEM_U8,   [COLLX_GROUP_U16] = COLLX_ELEM_U16,
    [COLLX_GROUP_U32] = COLLX_ELEM_U32, [COLLX_GROUP_U64] = COLLX_ELEM_U64,
    [COLLX_GROUP_F16] = COLLX_ELEM_F16, [COLLX_GROUP_BF16] = COLLX_ELEM_BF16,
    [COLLX_GROUP_F32] = COLLX_ELEM_F32, [COLLX_GROUP_F64] = COLLX_ELEM_F64,
};
static const uint8_t elem_bytes[] = {
    [COLLX_GROUP_I8] = 1,  [COLLX_GROUP_I16] = 2,  [COLLX_GROUP_I32] = 4, [COLLX_GROUP_I64] = 8,
    [COLLX_GROUP_U8] = 1,  [COLLX_GROUP_U16] = 2,  [COLLX_GROUP_U32] = 4, [COLLX_GROUP_U64] = 8,
    [COLLX_GROUP_F16] = 2, [COLLX_GROUP_BF16] = 2, [COLLX_GROUP_F32] = 4, [COLLX_GROUP_F64] = 8,
};
_Static_assert(sizeof elems / sizeof *elems == sizeof elem_bytes, "one each");

static const enum collx_op ops[] = {
    [COLLX_GROUP_SUM] = COLLX_OP_SUM,   [COLLX_GROUP_PROD] = COLLX_OP_PROD,
    [COLLX_GROUP_MIN] = COLLX_OP_MIN,   [COLLX_GROUP_MAX] = COLLX_OP_MAX,
    [COLLX_GROUP_BAND] = COLLX_OP_BAND, [COLLX_GROUP_BOR] = COLLX_OP_BOR,
    [COLLX_GROUP_BXOR] = COLLX_OP_BXOR, [COLLX_GROUP_LAND] = COLLX_OP_LAND,
    [COLLX_GROUP_LOR] = COLLX_OP_LOR,   [COLLX_GROUP_LXOR] = COLLX_OP_LXOR,
};

_Static_assert((int)COLLX_GROUP_ELEMENT_MOST == (int)COLLX_ALLREDUCE_ELEMENT,
               "what algorithms take is what a caller is told");

static void report(const char *message)
{
    collx_warn("%s", message);
}

static void load_options(void)
{
    collx_options_load(environ, NULL);
}

/* What is wrong in the environment is so for all ranks, mostly. */
static void load_options_of_first(void)
{
    collx_options_load(environ, report);
}

/* Segments that others may still write to are kept until then. */
static void end_with_process(void)
{
    atexit(collx_seg_retired_finish);
}

static int check(const struct collx_group_config *config, char *why, size_t size)
{
    if (config->size >= 1 && config->rank >= 0 && config->rank < config->size && config->gather)
        return 0;
    snprintf(why, size,
             "rank %d of %d%s: a group needs at least one rank, each a number below its size, and "
             "gather()",
             config->rank, config->size, config->gather ? "" : " without gather()");
    return -EINVAL;
}

static int create(struct collx_group **group, const struct collx_group_config *config, char *why,
                  size_t size)
{
    static pthread_once_t loaded = PTHREAD_ONCE_INIT, ends = PTHREAD_ONCE_INIT;

    pthread_once(&loaded, config->rank == 0 ? load_options_of_first : load_options);
    int error = check(config, why, size);
    if (error)
        return error;
    struct collx_group *made = calloc(1, sizeof *made);
    if (!made) {
        snprintf(why, size, "out of memory");
        return -ENOMEM;
    }
    made->config = *config;
    made->owner = collx_process_own();
    snprintf(made->name, sizeof made->name, "%s", config->name ? config->name : "group");
    error = collx_group_setup(made, why, size);
    /* After a driver has loaded what it needs, so that this runs before that ends. */
    pthread_once(&ends, end_with_process);
    if (error)
        collx_group_destroy(made);
    else
        *group = made;
    return error;
}

int collx_group_create(struct collx_group **group, const struct collx_group_config *config,
                       char *why, size_t size)
{
    const int keep = errno;

    *group = NULL;
    int error = create(group, config, why, size);
    errno = keep;
    return error;
}

/* What the call needs beside buffers and count is in it, the same on all ranks. */
static int run(struct collx_group *group, enum collx_kind kind, struct collx_call *call)
{
    const int keep = errno;

    call->contiguous = true;
    for (int i = 0; i < group->candidates; i++) {
        const struct collx_group_candidate *candidate = &group->candidate[i];
        struct collx_group_attached *attached = &group->attached[candidate->attached];

        if (candidate->kind != kind || !attached->works ||
            !(candidate->ops & 1u << call->op_kind) ||
            (int64_t)call->bytes < candidate->bytes.first ||
            (int64_t)call->bytes > candidate->bytes.last)
            continue;
        if (attached->algorithm->takes && !attached->algorithm->takes(attached->slot.state, call))
            continue;
        int error = attached->slot.run(&attached->slot, call);
        errno = keep;
        return error;
    }
    return -ENOTSUP;
}

int collx_group_barrier(struct collx_group *group)
{
    return run(group, COLLX_BARRIER, &(struct collx_call){.op_kind = COLLX_OP_NONE});
}

int collx_group_bcast(struct collx_group *group, void *data, size_t bytes, int root)
{
    struct collx_call call = {.sbuf = data,
                              .rbuf = data,
                              .count = (int64_t)bytes,
                              .root = root,
                              .bytes = bytes,
                              .elem_bytes = 1};

    if (root < 0 || root >= group->team.size || bytes > INT64_MAX)
        return -EINVAL;
    return run(group, COLLX_BCAST, &call);
}

int collx_group_allreduce(struct collx_group *group, const void *in, void *out, size_t count,
                          enum collx_group_type type, enum collx_group_op op)
{
    if ((unsigned)type >= sizeof elem_bytes || (unsigned)op >= sizeof ops / sizeof *ops ||
        count > (size_t)INT64_MAX / elem_bytes[type])
        return -EINVAL;
    struct collx_call call = {
        .sbuf = in,
        .rbuf = out,
        .count = (int64_t)count,
        .op_kind = ops[op],
        .bytes = count * elem_bytes[type],
        .elem_bytes = elem_bytes[type],
        .reduce = collx_reduce_kernel(ops[op], elems[type]),
    };
    return call.reduce ? run(group, COLLX_ALLREDUCE, &call) : -EINVAL;
}

int collx_group_allreduce_by(struct collx_group *group, const void *in, void *out, size_t count,
                             size_t element_bytes, collx_group_combine *combine, void *context)
{
    const struct collx_group_operation operation = {combine, context};
    struct collx_call call = {
        .sbuf = in,
        .rbuf = out,
        .count = (int64_t)count,
        .op = (uintptr_t)&operation,
        .op_kind = COLLX_OP_USER,
        .bytes = count * element_bytes,
        .elem_bytes = element_bytes,
    };

    if (element_bytes == 0 || element_bytes > COLLX_GROUP_ELEMENT_MOST ||
        count > (size_t)INT64_MAX / element_bytes || !combine)
        return -EINVAL;
    return run(group, COLLX_ALLREDUCE, &call);
}

char *collx_group_describe(const struct collx_group *group, const char *collective, char *text,
                           size_t size)
{
    size_t length = 0;
    int count = 0;

    if (size)
        *text = '\0';
    for (int i = 0; i < group->candidates; i++) {
        const struct collx_group_candidate *candidate = &group->candidate[i];
        const struct collx_group_attached *attached = &group->attached[candidate->attached];
        char line[COLLX_WHY_MAX] = "";

        if (!attached->works || strcmp(collx_kind_name(candidate->kind), collective) != 0)
            continue;
        if (attached->algorithm->describe)
            attached->algorithm->describe(attached->slot.state, line, sizeof line);
        if (length < size)
            length += (size_t)snprintf(text + length, size - length, "%s%s%s%s%s",
                                       count++ ? ", " : "", attached->algorithm->name,
                                       *line ? " (" : "", line, *line ? ")" : "");
    }
    return text;
}

void collx_group_destroy(struct collx_group *group)
{
    const int keep = errno;

    if (!group || group->owner != collx_process_own())
        return;
    while (group->attached_count) {
        struct collx_group_attached *attached = &group->attached[--group->attached_count];
        if (attached->works)
            attached->algorithm->detach(attached->slot.state);
    }
    collx_shm_close(group->segment, group->segment_size);
    free(group->attached);
    free(group->candidate);
    free(group->message);
    free(group->node);
    free(group);
    errno = keep;
}
