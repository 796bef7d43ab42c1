/* The trace file as it lies on disk; docs/trace-format.md tells the same in prose.
 *
 * A file is one header of COLLX_TRACE_HEADER bytes, followed by records of COLLX_TRACE_RECORD
 * bytes each.  A record is there when its tag is not 0; no record refers to a later one.  All
 * numbers are little-endian.  Whoever changes anything here increases COLLX_TRACE_VERSION.
 */
#ifndef COLLX_TRACE_FORMAT_H
#define COLLX_TRACE_FORMAT_H

#include "trace/recorder.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "records are written as they lie in memory");

#define COLLX_TRACE_MAGIC "collxtrc" /* 8 bytes, no NUL */
#define COLLX_TRACE_SUFFIX ".collx"

enum {
    COLLX_TRACE_VERSION = 4, /* older ones are read as well: what came later is 0 there */
    COLLX_TRACE_VERSION_FIRST = 1,
    COLLX_TRACE_BYTE_ORDER = 0x01020304,
    COLLX_TRACE_HEADER = 4096,
    COLLX_TRACE_RECORD = 48,
    /* What a file grows by: whole pages and whole records, also where pages have 64 KiB. */
    COLLX_TRACE_WINDOW = 4096 * COLLX_TRACE_RECORD,
    COLLX_TRACE_TEXT = 40, /* bytes of text in one record */
    COLLX_TRACE_BUILD_ID = 32,
};

/* The numbers in events mean what these tables say. */
static_assert(COLLX_KINDS == 22 && COLLX_FORMS == 3, "increase COLLX_TRACE_VERSION");
static_assert(COLLX_OP_COUNT == 16 && COLLX_REASON_COUNT == 8, "increase COLLX_TRACE_VERSION");

/* Why a file holds no more events although the job went on. */
enum collx_trace_stop { COLLX_TRACE_GOING, COLLX_TRACE_LIMIT, COLLX_TRACE_FAILED };

/* Texts end with a NUL; what is too long is cut. */
struct collx_trace_header {
    char magic[8];
    uint32_t version, byte_order, header_bytes, record_bytes;
    uint64_t job;                   /* equal for all files of a job, different for different jobs */
    int32_t world_rank, world_size; /* -1 and 0: no MPI_COMM_WORLD */
    uint64_t start_ns;              /* CLOCK_MONOTONIC when the run began … */
    uint64_t start_realtime_ns;     /* … and CLOCK_REALTIME at the same moment */
    uint64_t end_ns;                /* CLOCK_MONOTONIC at the end; 0: it was never closed */
    uint64_t dropped;               /* events that are missing at the end */
    uint32_t stop;                  /* enum collx_trace_stop: why they are missing */
    uint32_t stop_errno;            /* for COLLX_TRACE_FAILED */
    uint32_t pid;
    uint32_t pad;
    char boot_id[40]; /* processes with the same one share CLOCK_MONOTONIC */
    char host[72];
    char release[32]; /* of collx */
    char mpi[256];
    char command[2048];
    uint64_t records; /* in the file when it was closed; since version 3 */
    char rest[COLLX_TRACE_HEADER - 2544];
};

static_assert(sizeof(struct collx_trace_header) == COLLX_TRACE_HEADER, "the header is 4096 bytes");
static_assert(offsetof(struct collx_trace_header, job) == 24, "no holes");
static_assert(offsetof(struct collx_trace_header, dropped) == 64, "no holes");
static_assert(offsetof(struct collx_trace_header, boot_id) == 88, "no holes");
static_assert(offsetof(struct collx_trace_header, records) == 2536, "no holes");

enum collx_trace_tag {
    COLLX_TRACE_NOTHING, /* not written, or not to its end */
    COLLX_TRACE_EVENT,
    COLLX_TRACE_COMPLETION,
    COLLX_TRACE_COMM,
    COLLX_TRACE_SITE,
    COLLX_TRACE_MODULE,
    COLLX_TRACE_ROUTE,
    COLLX_TRACE_STRING,
    COLLX_TRACE_TAGS,
};

/* One record.  Its last eight bytes hold the tag and are stored last and at once. */
struct collx_trace_record {
    union {
        struct {
            uint64_t begin_ns, end_ns, bytes;
            uint32_t comm, sequence, site;
            int32_t root;
        } event; /* the rest of it is in `small` */
        struct {
            uint64_t event; /* which record: 0 is the first of the file */
            uint64_t when_ns;
        } completion;
        struct {
            uint64_t global;
            uint32_t id;
            int32_t rank, size, nodes;
            uint32_t name; /* a string */
            uint32_t pad;
            uint64_t shared; /* since version 2 */
        } comm;
        struct {
            uint64_t offset; /* return address, from where the module was loaded */
            uint32_t id, module;
        } site;
        struct {
            uint8_t build_id[COLLX_TRACE_BUILD_ID];
            uint32_t id;
            uint32_t path; /* a string */
        } module;
        struct {
            uint32_t id;
            uint32_t name; /* a string */
        } route;
        char text[COLLX_TRACE_TEXT]; /* of a string: the next bytes of it */
        uint64_t words[5];
    };
    union {
        struct {
            uint8_t kind, form, op, route, reason, pad[2];
            uint8_t tag;
        } event_small;
        struct {
            uint8_t build_id_size, pad[6];
            uint8_t tag;
        } module_small;
        struct {
            uint32_t id; /* which string; 0 is the empty one and never written */
            uint8_t size, pad[2];
            uint8_t tag;
        } text_small;
        uint64_t last;
        uint8_t last_bytes[8];
    };
};

static_assert(sizeof(struct collx_trace_record) == COLLX_TRACE_RECORD, "a record is 48 bytes");
static_assert(offsetof(struct collx_trace_record, last) == 40, "the tag is in the last word");
static_assert(offsetof(struct collx_trace_record, event_small.tag) == 47,
              "the tag is the last byte");
static_assert(offsetof(struct collx_trace_record, text_small.tag) == 47,
              "the tag is the last byte");
static_assert(offsetof(struct collx_trace_record, comm.shared) == 32, "no holes");
static_assert(COLLX_TRACE_WINDOW % 65536 == 0, "a window is whole pages");

static inline unsigned collx_trace_tag(const struct collx_trace_record *record)
{
    return record->last_bytes[7];
}

#endif
