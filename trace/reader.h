/* Reads trace files, whatever they hold: truncated, foreign, corrupted, still growing.
 *
 * Files are read in pieces, never mapped: one that is cut short while it is read is then just at
 * its end.  Every number that refers to something was checked before a caller sees it.
 */
#ifndef COLLX_TRACE_READER_H
#define COLLX_TRACE_READER_H

#include "trace/format.h"

#include <stdbool.h>
#include <sys/types.h>

/* Communicators, sites, modules and routes of one file.  Index 0 of the first three is what is not
 * known; records refer to them by index into these arrays. */
struct collx_trace_read_comm {
    uint64_t global;
    int32_t rank, size, nodes;
    uint64_t shared; /* bytes of memory that its ranks share */
    char *name;      /* never NULL; "": it has none */
};

struct collx_trace_read_site {
    uint32_t module; /* 0: not known */
    uint64_t offset; /* return address */
};

struct collx_trace_read_module {
    char *path; /* never NULL; to be opened: it may hold anything */
    uint8_t build_id[COLLX_TRACE_BUILD_ID];
    uint8_t build_id_size;
};

struct collx_trace {
    struct collx_trace_header header; /* all texts end with a NUL */
    char *path;
    const char *name; /* the last part of path */
    struct collx_trace_read_comm *comms;
    struct collx_trace_read_site *sites;
    struct collx_trace_read_module *modules;
    char **routes; /* never NULL inside */
    uint32_t comms_count, sites_count, modules_count, routes_count;
    uint64_t records; /* room for that many, used or not */
    uint64_t events;
    uint64_t invalid; /* records that make no sense and are passed over */
    uint64_t lost;    /* records that were there, and have been cut off */
    uint64_t last_ns; /* end of the latest event; header.start_ns when there is none */

    /* The reading position. */
    int fd;
    uint64_t next;                     /* record that is read next */
    uint64_t piece_first, piece_count; /* which records are in piece[] */
    struct collx_trace_record *piece;
};

enum { COLLX_TRACE_PIECE = 1024 }; /* records that are read at a time */

/* Open a file and read all its definitions.  0, -errno or COLLX_EINVALID; then what is wrong, and
 * what it means, is in `why`, beginning with the file's name.  A file can be opened and still have
 * a `problem`: see collx_trace_problem. */
int collx_trace_open(struct collx_trace **trace, const char *path, char *why, size_t size);

/* The next event or completion, in the order in which they were recorded.  The record stays valid
 * until the next call.  `number` (may be NULL): which one it is; completions refer to it.  NULL at
 * the end. */
const struct collx_trace_record *collx_trace_next(struct collx_trace *trace, uint64_t *number);

/* Nothing more is read from it: close its file.  All that was read stays. */
void collx_trace_done(struct collx_trace *trace);

/* The event that a completion belongs to, copied into *event; false if there is none. */
bool collx_trace_event_of(struct collx_trace *trace, const struct collx_trace_record *completion,
                          struct collx_trace_record *event);

/* What is to be said about a file that could be read, without its name: "ended without
 * MPI_Finalize", events that are missing and why, damage.  False: nothing. */
bool collx_trace_problem(const struct collx_trace *trace, char *text, size_t size);

/* When the run of this rank ended: header.end_ns, or the end of the last event. */
uint64_t collx_trace_end_ns(const struct collx_trace *trace);

/* Until when all events are there: as above, but the end of the last one where later ones are
 * missing. */
uint64_t collx_trace_seen_ns(const struct collx_trace *trace);

void collx_trace_close(struct collx_trace *trace);

#endif
