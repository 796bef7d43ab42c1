#include "trace/reader.h"

#include "base/error.h"
#include "base/log.h"
#include "trace/running.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    DEFINITIONS_MAX = 1 << 24, /* comms, sites, … that a sane file can have; damage has more */
    STRING_MAX = 1 << 16,      /* bytes that a sane string can have */
};

/* While the definitions are read, strings are known by number. */
struct strings {
    char **text;
    uint32_t count;
};

/* Room grows in powers of two, so that defining n things costs O(n). */
static uint32_t room_for(uint32_t count)
{
    uint32_t room = 16;

    while (room < count)
        room *= 2;
    return count ? room : 0;
}

/* Make element `id` of an array exist; new elements are zero. */
static bool reach(void *array, uint32_t *count, uint32_t id, size_t element)
{
    char *base;

    if (id < *count)
        return true;
    /* Numbers are given in order; several threads store them nearly so.  All else is damage. */
    if (id >= DEFINITIONS_MAX || id > *count + 4096)
        return false;
    memcpy(&base, array, sizeof base);
    if (room_for(id + 1) > room_for(*count)) {
        base = realloc(base, room_for(id + 1) * element);
        if (!base)
            return false;
        memcpy(array, &base, sizeof base);
    }
    memset(base + *count * element, 0, (id + 1 - *count) * element);
    *count = id + 1;
    return true;
}

static const char *string_of(const struct strings *strings, uint32_t id)
{
    return id < strings->count && strings->text[id] ? strings->text[id] : "";
}

static bool add_string(struct strings *strings, const struct collx_trace_record *record)
{
    uint32_t id = record->text_small.id;
    size_t size = record->text_small.size;

    if (!id || size > COLLX_TRACE_TEXT ||
        !reach(&strings->text, &strings->count, id, sizeof *strings->text) || !strings->text)
        return false;
    size_t before = strings->text[id] ? strlen(strings->text[id]) : 0;
    char *longer =
        before + size > STRING_MAX ? NULL : realloc(strings->text[id], before + size + 1);
    if (!longer)
        return false;
    memcpy(longer + before, record->text, size);
    longer[before + size] = 0;
    strings->text[id] = longer;
    return true;
}

/* What is defined again is known better than before. */
static bool set_text(char **text, const char *value)
{
    char *copy = strdup(value);

    if (!copy)
        return false;
    free(*text);
    *text = copy;
    return true;
}

/* The same, made safe to print. */
static bool set_name(char **text, const char *value)
{
    if (!set_text(text, value))
        return false;
    collx_text_clean(*text, '?');
    return true;
}

static bool define(struct collx_trace *trace, struct strings *strings,
                   const struct collx_trace_record *record)
{
    switch (collx_trace_tag(record)) {
    case COLLX_TRACE_STRING:
        return add_string(strings, record);
    case COLLX_TRACE_COMM: {
        uint32_t id = record->comm.id;
        if (!id || record->comm.size < 1 || record->comm.rank < 0 ||
            record->comm.rank >= record->comm.size || record->comm.nodes < 0 ||
            record->comm.shared > INT64_MAX ||
            !reach(&trace->comms, &trace->comms_count, id, sizeof *trace->comms))
            return false;
        struct collx_trace_read_comm *comm = &trace->comms[id];
        comm->global = record->comm.global;
        comm->rank = record->comm.rank;
        comm->size = record->comm.size;
        comm->nodes = record->comm.nodes;
        comm->shared = record->comm.shared;
        return set_name(&comm->name, string_of(strings, record->comm.name));
    }
    case COLLX_TRACE_SITE: {
        uint32_t id = record->site.id;
        if (!id || record->site.module >= trace->modules_count ||
            !reach(&trace->sites, &trace->sites_count, id, sizeof *trace->sites))
            return false;
        trace->sites[id] = (struct collx_trace_read_site){record->site.module, record->site.offset};
        return true;
    }
    case COLLX_TRACE_MODULE: {
        uint32_t id = record->module.id;
        if (!id || record->module_small.build_id_size > COLLX_TRACE_BUILD_ID ||
            !reach(&trace->modules, &trace->modules_count, id, sizeof *trace->modules))
            return false;
        struct collx_trace_read_module *module = &trace->modules[id];
        module->build_id_size = record->module_small.build_id_size;
        memcpy(module->build_id, record->module.build_id, sizeof module->build_id);
        return set_text(&module->path, string_of(strings, record->module.path));
    }
    case COLLX_TRACE_ROUTE:
        if (record->route.id > UINT8_MAX ||
            !reach(&trace->routes, &trace->routes_count, record->route.id, sizeof *trace->routes))
            return false;
        return set_name(&trace->routes[record->route.id], string_of(strings, record->route.name));
    }
    return false;
}

static bool is_sane_event(const struct collx_trace *trace, const struct collx_trace_record *record)
{
    return record->event.begin_ns <= record->event.end_ns &&
           record->event.begin_ns >= trace->header.start_ns &&
           record->event.end_ns <= (trace->header.end_ns ? trace->header.end_ns : INT64_MAX) &&
           record->event.bytes <= INT64_MAX && record->event.comm < trace->comms_count &&
           record->event.site < trace->sites_count && record->event_small.kind < COLLX_KINDS &&
           record->event_small.form < COLLX_FORMS && record->event_small.op < COLLX_OP_COUNT &&
           record->event_small.reason < COLLX_REASON_COUNT &&
           record->event_small.route < trace->routes_count;
}

/* Into `piece`: so many records from `first` on as there are, at most as many as were asked for. */
static void fetch(struct collx_trace *trace, uint64_t first, uint64_t records)
{
    const off_t at = (off_t)(COLLX_TRACE_HEADER + first * COLLX_TRACE_RECORD);
    const ssize_t got = pread(trace->fd, trace->piece, records * COLLX_TRACE_RECORD, at);

    trace->piece_first = first;
    trace->piece_count = got > 0 ? (uint64_t)got / COLLX_TRACE_RECORD : 0;
}

/* Record `number`, or NULL at the end of the file. */
static const struct collx_trace_record *get(struct collx_trace *trace, uint64_t number)
{
    if (number < trace->piece_first || number >= trace->piece_first + trace->piece_count) {
        fetch(trace, number, COLLX_TRACE_PIECE);
        if (!trace->piece_count)
            return NULL;
    }
    return &trace->piece[number - trace->piece_first];
}

/* Acquire: what is read from now on is no older than the tag that is in the last word, before which
 * all the records before had theirs; pairs with the release in collx_trace_writer_put(). */
static bool is_written(const struct collx_trace_record *record)
{
    return __atomic_load_n(&record->last, __ATOMIC_ACQUIRE) >> 56;
}

/* Of a file that may still be written: leave out what is behind the last record that there is now.
 * While it is read more comes there, which refers to what had not been there when its place was
 * read; and the copy of a record may be older than that of its tag. */
static void find_last(struct collx_trace *trace)
{
    bool found = false;

    while (trace->records && !found) {
        const uint64_t most = COLLX_TRACE_PIECE;
        const uint64_t first = trace->records > most ? trace->records - most : 0;
        fetch(trace, first, trace->records - first);
        uint64_t count = trace->piece_count;
        while (count && !is_written(&trace->piece[count - 1]))
            count--;
        found = count > 0;
        trace->records = first + count;
    }
    trace->piece_count = 0;
}

/* One look at every record: read the definitions, count the rest. */
static bool survey(struct collx_trace *trace)
{
    struct strings strings = {0};
    uint64_t records = 0;
    const struct collx_trace_record *record;
    bool enough = reach(&trace->comms, &trace->comms_count, 0, sizeof *trace->comms) &&
                  reach(&trace->sites, &trace->sites_count, 0, sizeof *trace->sites) &&
                  reach(&trace->modules, &trace->modules_count, 0, sizeof *trace->modules);

    for (uint64_t i = 0; enough && i < trace->records && (record = get(trace, i)); i++) {
        const unsigned tag = collx_trace_tag(record);

        if (tag != COLLX_TRACE_NOTHING)
            records = i + 1;
        switch (tag) {
        case COLLX_TRACE_NOTHING:
            /* Only where somebody was killed in the middle of it. */
            trace->invalid += trace->header.end_ns && i < trace->header.records;
            break;
        case COLLX_TRACE_COMPLETION:
            break;
        case COLLX_TRACE_EVENT:
            if (!is_sane_event(trace, record)) {
                trace->invalid++;
                break;
            }
            trace->events++;
            if (record->event.end_ns > trace->last_ns)
                trace->last_ns = record->event.end_ns;
            break;
        default:
            if (!define(trace, &strings, record))
                trace->invalid++;
        }
    }

    trace->records = records;
    /* Numbers that were skipped are what nothing is known of. */
    for (uint32_t i = 0; enough && i < trace->comms_count; i++)
        enough = trace->comms[i].name || set_text(&trace->comms[i].name, "");
    for (uint32_t i = 0; enough && i < trace->modules_count; i++)
        enough = trace->modules[i].path || set_text(&trace->modules[i].path, "");
    for (uint32_t i = 0; enough && i < trace->routes_count; i++)
        enough = trace->routes[i] || set_text(&trace->routes[i], "?");

    for (uint32_t i = 0; i < strings.count; i++)
        free(strings.text[i]);
    free(strings.text);
    return enough;
}

/* A text of the header, made safe to print. */
static void clean_field(char *text, size_t size)
{
    text[collx_text_fit(text, size - 1)] = 0;
    collx_text_clean(text, ' ');
}

static int check_header(struct collx_trace *trace, char *why, size_t why_size)
{
    struct collx_trace_header *header = &trace->header;
    ssize_t got = pread(trace->fd, header, sizeof *header, 0);

    if (got < 0) {
        int error = -errno;
        snprintf(why, why_size, "%s: cannot be read: %s", trace->name, strerror(-error));
        return error;
    }
    if ((size_t)got < sizeof header->magic ||
        memcmp(header->magic, COLLX_TRACE_MAGIC, sizeof header->magic))
        snprintf(why, why_size, "%s: not a collx trace%s", trace->name,
                 got ? "" : " (it is empty)");
    else if (got < COLLX_TRACE_HEADER)
        snprintf(why, why_size,
                 "%s: truncated: only %lld bytes of it are there, fewer than a "
                 "trace's header has",
                 trace->name, (long long)got);
    else if (header->byte_order != COLLX_TRACE_BYTE_ORDER)
        snprintf(why, why_size, "%s: damaged, or written on a machine with another byte order",
                 trace->name);
    else if (header->version < COLLX_TRACE_VERSION_FIRST || header->version > COLLX_TRACE_VERSION)
        snprintf(why, why_size,
                 "%s: has format version %u, but this collx-report reads versions %d to %d; "
                 "use the collx-report of the collx that wrote it",
                 trace->name, header->version, COLLX_TRACE_VERSION_FIRST, COLLX_TRACE_VERSION);
    else if (header->header_bytes != COLLX_TRACE_HEADER ||
             header->record_bytes != COLLX_TRACE_RECORD || header->world_rank < -1 ||
             header->world_size < 0 || header->world_rank >= header->world_size ||
             header->start_ns > INT64_MAX || header->end_ns > INT64_MAX ||
             header->start_realtime_ns > INT64_MAX ||
             (header->end_ns && header->end_ns < header->start_ns))
        snprintf(why, why_size, "%s: its header is damaged", trace->name);
    else
        return 0;
    return COLLX_EINVALID;
}

/* How many there are, and what has been cut off; where the file was never closed that is not known.
 * Its size is looked at after its header: one that has been closed does not grow any more. */
static void find_records(struct collx_trace *trace)
{
    const struct collx_trace_header *header = &trace->header;
    const off_t size = lseek(trace->fd, 0, SEEK_END);
    /* It may have been cut since its header was read. */
    const uint64_t bytes = size > COLLX_TRACE_HEADER ? (uint64_t)size - COLLX_TRACE_HEADER : 0;
    /* Version 2 did not count them, but they were whole ones. */
    const uint64_t least = (bytes + COLLX_TRACE_RECORD - 1) / COLLX_TRACE_RECORD;
    const uint64_t written = header->version < 3 ? least : header->records;

    trace->records = bytes / COLLX_TRACE_RECORD;
    if (header->end_ns && written > trace->records)
        trace->lost = written - trace->records;
}

int collx_trace_open(struct collx_trace **result, const char *path, char *why, size_t size)
{
    struct collx_trace *trace = calloc(1, sizeof *trace);
    struct stat facts;
    int error = -ENOMEM;

    *result = NULL;
    snprintf(why, size, "%s: out of memory", path);
    if (!trace)
        return error;
    trace->fd = -1;
    trace->path = strdup(path);
    trace->piece = malloc(COLLX_TRACE_PIECE * sizeof *trace->piece);
    if (!trace->path || !trace->piece)
        goto fail;
    const char *slash = strrchr(trace->path, '/');
    trace->name = slash ? slash + 1 : trace->path;

    /* Not to be kept waiting by a FIFO of that name. */
    trace->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (trace->fd < 0 || fstat(trace->fd, &facts)) {
        error = -errno;
        snprintf(why, size, "%s: cannot be opened: %s", trace->name, strerror(-error));
        goto fail;
    }
    if (!S_ISREG(facts.st_mode)) {
        error = COLLX_EINVALID;
        snprintf(why, size, "%s: not a collx trace, not even a file", trace->name);
        goto fail;
    }
    error = check_header(trace, why, size);
    if (error)
        goto fail;
    clean_field(trace->header.boot_id, sizeof trace->header.boot_id);
    clean_field(trace->header.host, sizeof trace->header.host);
    clean_field(trace->header.release, sizeof trace->header.release);
    clean_field(trace->header.mpi, sizeof trace->header.mpi);
    clean_field(trace->header.command, sizeof trace->header.command);
    find_records(trace);
    if (!trace->header.end_ns)
        find_last(trace);
    trace->last_ns = trace->header.start_ns;
    if (!survey(trace)) {
        error = -ENOMEM;
        goto fail;
    }
    *result = trace;
    return 0;
fail:
    collx_trace_close(trace);
    return error;
}

const struct collx_trace_record *collx_trace_next(struct collx_trace *trace, uint64_t *number)
{
    const struct collx_trace_record *record;

    while (trace->next < trace->records && (record = get(trace, trace->next))) {
        unsigned tag = collx_trace_tag(record);
        uint64_t at = trace->next++;

        if ((tag == COLLX_TRACE_EVENT && is_sane_event(trace, record)) ||
            (tag == COLLX_TRACE_COMPLETION && record->completion.event < at)) {
            if (number)
                *number = at;
            return record;
        }
    }
    return NULL;
}

void collx_trace_done(struct collx_trace *trace)
{
    if (trace->fd >= 0)
        close(trace->fd);
    trace->fd = -1;
    trace->next = trace->records;
    free(trace->piece);
    trace->piece = NULL;
    trace->piece_count = 0;
}

bool collx_trace_event_of(struct collx_trace *trace, const struct collx_trace_record *completion,
                          struct collx_trace_record *event)
{
    uint64_t number = completion->completion.event, when = completion->completion.when_ns;

    if (number >= trace->piece_first && number < trace->piece_first + trace->piece_count)
        *event = trace->piece[number - trace->piece_first];
    else if (number >= trace->records ||
             pread(trace->fd, event, sizeof *event,
                   (off_t)(COLLX_TRACE_HEADER + number * COLLX_TRACE_RECORD)) != sizeof *event)
        return false;
    return collx_trace_tag(event) == COLLX_TRACE_EVENT && is_sane_event(trace, event) &&
           when >= event->event.begin_ns && when <= INT64_MAX;
}

/* As far as something is to be said about that. */
static const char *how_it_ended(const struct collx_trace_header *header)
{
    char boot_id[sizeof header->boot_id];

    if (header->end_ns)
        return "";
    collx_file_text("/proc/sys/kernel/random/boot_id", boot_id, sizeof boot_id);
    return collx_trace_is_running(header, boot_id) ? "has not ended yet"
                                                   : "ended without MPI_Finalize";
}

bool collx_trace_problem(const struct collx_trace *trace, char *text, size_t size)
{
    const struct collx_trace_header *header = &trace->header;
    const char *ended = how_it_ended(header);
    char missing[160] = "", damaged[96] = "";

    if (header->dropped)
        snprintf(missing, sizeof missing, "its last %llu events are missing: %s",
                 (unsigned long long)header->dropped,
                 header->stop == COLLX_TRACE_LIMIT ? "the limit was reached (COLLX_TRACE_LIMIT)"
                                                   : strerror((int)header->stop_errno));
    if (trace->lost)
        snprintf(damaged, sizeof damaged, "truncated: of its records the last %llu are missing",
                 (unsigned long long)trace->lost);
    else if (trace->invalid)
        snprintf(damaged, sizeof damaged,
                 "damaged: %llu records make no sense and were passed over",
                 (unsigned long long)trace->invalid);
    snprintf(text, size, "%s%s%s%s%s", ended, *ended && *missing ? "; " : "", missing,
             (*ended || *missing) && *damaged ? "; " : "", damaged);
    return *text;
}

uint64_t collx_trace_end_ns(const struct collx_trace *trace)
{
    return trace->header.end_ns ? trace->header.end_ns : trace->last_ns;
}

uint64_t collx_trace_seen_ns(const struct collx_trace *trace)
{
    if (!trace->header.dropped && !trace->lost)
        return collx_trace_end_ns(trace);
    return trace->events ? trace->last_ns : trace->header.start_ns;
}

void collx_trace_close(struct collx_trace *trace)
{
    if (!trace)
        return;
    for (uint32_t i = 0; i < trace->comms_count; i++)
        free(trace->comms[i].name);
    for (uint32_t i = 0; i < trace->modules_count; i++)
        free(trace->modules[i].path);
    for (uint32_t i = 0; i < trace->routes_count; i++)
        free(trace->routes[i]);
    free(trace->comms);
    free(trace->sites);
    free(trace->modules);
    free(trace->routes);
    free(trace->path);
    collx_trace_done(trace);
    free(trace);
}
