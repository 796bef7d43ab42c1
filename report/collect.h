/* Inside of the summary: what is kept while the traces are read.  load.c opens them and gives
 * everything in them a number that is the same for all files, collect.c reads them, match.c finds
 * calls that belong together, rows.c makes rows of it. */
#ifndef COLLX_REPORT_COLLECT_H
#define COLLX_REPORT_COLLECT_H

#include "report/index.h"
#include "report/summary.h"

/* What one rank did under one key. */
struct collx_cell {
    struct collx_key key;
    uint32_t line; /* of the collector */
    uint64_t calls, time_ns;
    uint64_t matched, matched_ns, wait_ns, last;
    double turns; /* of `last`, if all ranks of each communicator were last equally often */
    uint64_t completed, flight_ns;
};

/* What all ranks did under one key. */
struct collx_line {
    struct collx_key key;
    struct collx_histogram durations;
};

/* A communicator. */
struct collx_instance {
    uint64_t global;
    const char *name;
    int size;
    uint32_t files; /* how many traces know it */
    uint32_t last_file;
    uint32_t comm; /* index into summary.comms */
    uint64_t shared;
    bool *there; /* by rank: whether a trace is its; NULL: there are too few of them for all */
    bool mixed;  /* it is several: more than one trace is of one rank */
};

struct collx_file {
    struct collx_trace *trace;
    int64_t shift;                 /* added to its times makes them CLOCK_REALTIME */
    uint32_t *comm, *site, *route; /* numbers in the file to instances, sites and routes */
    struct collx_cell *cells;
    uint32_t cells_count, last_cell;
    struct collx_index index; /* of cells */
    uint64_t now;             /* how far it was read */
};

struct collx_matcher;

struct collx_collector {
    struct collx_file *files; /* as many as summary.ranks */
    uint32_t files_count;
    bool unread;                      /* there are more than may be open at a time */
    struct collx_instance *instances; /* [0]: unknown */
    uint32_t instances_count;
    struct collx_line *lines;
    uint32_t lines_count;
    struct collx_index line_index, instance_index, comm_index, site_index, module_index;
    struct collx_matcher *matcher;
};

/* Fills in everything but what is counted from records. */
int collx_load(struct collx_summary *summary, const char *path,
               const struct collx_report_options *options, char *why, size_t size);
/* A line for `problems`. */
void collx_problem_add(struct collx_summary *summary, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

int collx_collect(struct collx_summary *summary, bool progress);

/* One rank came to a collective.  When it was the last, waits go to the cells of all of them.
 * -ENOMEM. */
int collx_match(struct collx_summary *summary, uint32_t file, uint32_t cell, uint32_t instance,
                const struct collx_trace_record *event);
/* When all were read: a line for `problems`, if something in them cannot be. */
void collx_matcher_report(struct collx_summary *summary);
void collx_matcher_destroy(struct collx_matcher *matcher);

static inline uint64_t collx_key_hash(const struct collx_key *key)
{
    return collx_index_hash((uint64_t)key->kind | (uint64_t)key->form << 8 |
                                (uint64_t)key->size_class << 16 | (uint64_t)key->reason << 24 |
                                (uint64_t)key->route << 32,
                            (uint64_t)key->comm << 32 | key->site);
}

#endif
