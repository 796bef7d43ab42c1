/* Where in the program an MPI call was made. */
#ifndef COLLX_TRACE_CALLSITE_H
#define COLLX_TRACE_CALLSITE_H

#include "trace/format.h"

struct collx_trace_module {
    const char *path;
    uint8_t build_id[COLLX_TRACE_BUILD_ID];
    uint8_t build_id_size; /* 0: it has none */
};

/* What callsite.c tells about what it finds, each thing once, a module before its sites. */
struct collx_callsite_ops {
    void (*module)(uint32_t id, const struct collx_trace_module *module);
    void (*site)(uint32_t id, uint32_t module, uint64_t offset);
};

/* The call site of a call that will return to `caller`; 0 where it cannot be told.  Any thread. */
uint32_t collx_callsite_find(const void *caller, const struct collx_callsite_ops *ops);

/* Forget everything: a new trace begins. */
void collx_callsite_reset(void);

#endif
