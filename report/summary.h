/* What a folder of traces says, in memory: every output format is printed from this.
 *
 * The traces are read once, all files side by side in order of time, and only sums and histograms
 * are kept: memory grows with what a program does that is different, not with how often.
 */
#ifndef COLLX_REPORT_SUMMARY_H
#define COLLX_REPORT_SUMMARY_H

#include "report/histogram.h"
#include "trace/reader.h"

/* The keys that rows are grouped by.  Route includes the reason, collective the form. */
enum {
    COLLX_BY_COLLECTIVE = 1,
    COLLX_BY_COMM = 2,
    COLLX_BY_SIZE = 4,
    COLLX_BY_ROUTE = 8,
    COLLX_BY_SITE = 16,
    COLLX_BY_ALL = 31,
};

enum { COLLX_SIZE_CLASSES = 10 };

/* Largest size in class `i`; the classes are 0, 1 … 8, 9 … 64, and so on by factors of 8. */
uint64_t collx_size_class_last(unsigned i);

struct collx_key {
    uint8_t kind, form, size_class, reason;
    uint32_t route, comm, site; /* indices into the summary's arrays */
};

/* All communicators of one name and size: those that MPI_Comm_split made, or a loop. */
struct collx_report_comm {
    const char *name; /* "": they have none */
    int size;         /* 0: nothing is known of it */
    uint32_t instances;
    bool mixed; /* some of them cannot be told apart */
    uint64_t
        shared; /* bytes of memory that the ranks of one of them share; of the one that has most */
};

struct collx_report_site {
    uint32_t module;
    uint64_t offset;
};

struct collx_report_module {
    const char *path;
    const uint8_t *build_id;
    size_t build_id_size;
};

struct collx_rank {
    const struct collx_trace *trace; /* for its header */
    uint32_t number;                 /* world rank, or counted on where there is none */
    uint64_t run_ns;
    uint64_t seen_ns; /* of that, until the last event where those that follow are missing */
    uint64_t calls, time_ns, wait_ns, matched, last;
};

struct collx_summary {
    struct collx_rank *ranks;
    uint32_t ranks_count;
    struct collx_report_comm *comms;
    struct collx_report_site *sites;
    struct collx_report_module *modules;
    char **routes;
    uint32_t comms_count, sites_count, modules_count, routes_count;

    uint64_t job;
    uint32_t nodes;   /* how many clocks: ranks of different ones are compared by CLOCK_REALTIME */
    uint64_t seen_ns; /* of all ranks together, as of each */
    uint64_t calls, time_ns;
    uint64_t matched;             /* how many of the calls were found on all ranks, for the waits */
    uint64_t wait_ns, matched_ns; /* of the matched calls: waiting, and all time */
    char **problems;              /* one line each, about files */
    uint32_t problems_count;
    bool damaged; /* some of them are errors: there is a file that could not be used */

    struct collx_collector *collector;
};

/* One line of a report.  What the row is not grouped by is 0 in `key`. */
struct collx_row {
    struct collx_key key;
    uint64_t calls, time_ns;
    struct collx_histogram durations;
    uint32_t ranks;         /* that made such calls */
    uint64_t rank_max_ns;   /* time of the rank that spent most */
    uint32_t rank_max;      /* which: index into summary.ranks */
    uint64_t matched;       /* calls that were found on all ranks */
    uint64_t matched_ns;    /* time in them */
    uint64_t wait_ns;       /* of that, before the last rank had arrived */
    uint64_t last, last_of; /* in `last` of its `last_of` matched calls rank_last was the last */
    double turns;           /* how often it would have been, if it were each rank's turn alike */
    uint32_t rank_last;     /* the one that was last most often; index into summary.ranks */
    uint64_t completed, flight_ns; /* nonblocking: seen to be over; from begin to that, together */
};

struct collx_report_options {
    uint64_t job; /* 0: the newest */
    bool progress;
};

/* Read all traces of a folder, or one file.  0, -errno or COLLX_EINVALID when nothing can be shown;
 * then `why` says what is wrong.  Everything belongs to the summary. */
int collx_summary_create(struct collx_summary **summary, const char *path,
                         const struct collx_report_options *options, char *why, size_t size);

/* Rows grouped by `by`, most time first.  To be freed with collx_rows_destroy().  -ENOMEM. */
int collx_summary_rows(const struct collx_summary *summary, unsigned by, struct collx_row **rows,
                       size_t *count);
void collx_rows_destroy(struct collx_row *rows, size_t count);

/* Imbalance: time of the busiest rank by the mean over the ranks that made such calls. */
double collx_row_imbalance(const struct collx_row *row);

/* "policy", "not taken"; "?" for what does not exist. */
const char *collx_reason_name(unsigned reason);

void collx_summary_destroy(struct collx_summary *summary);

#endif
