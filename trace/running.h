/* Beside format.h, which is installed, for recorder and reader alone. */
#ifndef COLLX_TRACE_RUNNING_H
#define COLLX_TRACE_RUNNING_H

#include "base/process.h"
#include "trace/format.h"

#include <string.h>

/* Whether the process that writes the file still does, on the system that `boot_id` is of. */
static inline bool collx_trace_is_running(const struct collx_trace_header *header,
                                          const char *boot_id)
{
    return !header->end_ns && !strncmp(header->boot_id, boot_id, sizeof header->boot_id) &&
           header->pid && !collx_process_has_ended((pid_t)header->pid);
}

#endif
