/* Writes one trace file, window by window.
 *
 * The header and one window are mapped, whatever the size of the file.  What was stored is in the
 * page cache and thus survives the process, however that ends.  Space is allocated before it is
 * mapped, so that a full disk is an error here and not a SIGBUS somewhere.
 */
#ifndef COLLX_TRACE_WRITER_H
#define COLLX_TRACE_WRITER_H

#include "trace/format.h"

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

struct collx_trace_writer {
    pthread_mutex_t lock; /* protects what follows */
    struct collx_trace_header *header;
    struct collx_trace_record *window; /* NULL: writing has stopped, or pauses */
    uint64_t first, next, end; /* records: the window's first, the next one, past its last */
    uint64_t limit;
    int fd; /* as long as it is that file: the program may close descriptors that are not its own */
    dev_t device;
    ino_t file;
    char path[4096];
};

/* Create the file of this process in `dir`, and `dir` itself if need be, with a copy of `header`.
 * A file that an earlier job left under the same name is replaced; while that job is still at it,
 * here, this one takes the name of a process without rank.  0, or a negative errno and a reason in
 * `why`. */
int collx_trace_writer_init(struct collx_trace_writer *writer, const char *dir, uint64_t limit,
                            const struct collx_trace_header *header, char *why, size_t size);

/* Append a record.  Returns its number, or UINT64_MAX when it could not be stored: writing has
 * stopped, said once.  Any thread. */
uint64_t collx_trace_writer_put(struct collx_trace_writer *writer,
                                const struct collx_trace_record *record);

/* Write the end time, give back unused space.  The file stays open, for that may not have been the
 * end; until resume() puts are ignored. */
void collx_trace_writer_pause(struct collx_trace_writer *writer, uint64_t end_ns);
void collx_trace_writer_resume(struct collx_trace_writer *writer);

/* The file is of that job. */
void collx_trace_writer_adopt(struct collx_trace_writer *writer, uint64_t job);

#endif
