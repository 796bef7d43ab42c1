/* Reads all traces side by side, in order of time. */
#include "report/collect.h"

#include "base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { BATCH = 64 }; /* records of one file before the next file is looked at */

static bool same_cell(const void *elements, uint32_t element, const void *key)
{
    return !memcmp(&((const struct collx_cell *)elements)[element].key, key,
                   sizeof(struct collx_key));
}

static bool same_line(const void *elements, uint32_t element, const void *key)
{
    return !memcmp(&((const struct collx_line *)elements)[element].key, key,
                   sizeof(struct collx_key));
}

static uint8_t size_class(uint64_t bytes)
{
    uint8_t i = 0;

    while (bytes > collx_size_class_last(i))
        i++;
    return i;
}

static struct collx_key key_of(const struct collx_summary *summary, const struct collx_file *file,
                               const struct collx_trace_record *event)
{
    const struct collx_instance *instances = summary->collector->instances;

    return (struct collx_key){
        .kind = event->event_small.kind,
        .form = event->event_small.form,
        .size_class = size_class(event->event.bytes),
        .reason = event->event_small.reason,
        .route = file->route[event->event_small.route],
        .comm = instances[file->comm[event->event.comm]].comm,
        .site = file->site[event->event.site],
    };
}

/* The cell of a key, made when it is new; UINT32_MAX: out of memory. */
static uint32_t cell_of(struct collx_collector *collector, struct collx_file *file,
                        const struct collx_key *key)
{
    if (file->cells_count && same_cell(file->cells, file->last_cell, key))
        return file->last_cell;
    if (!collx_array_grow(&file->cells, file->cells_count, sizeof *file->cells))
        return UINT32_MAX;
    uint64_t hash = collx_key_hash(key);
    uint32_t at =
        collx_index_find(&file->index, hash, same_cell, file->cells, key, file->cells_count);
    if (at == UINT32_MAX)
        return at;
    if (at == file->cells_count) {
        if (!collx_array_grow(&collector->lines, collector->lines_count, sizeof *collector->lines))
            return UINT32_MAX;
        uint32_t line = collx_index_find(&collector->line_index, hash, same_line, collector->lines,
                                         key, collector->lines_count);
        if (line == UINT32_MAX)
            return line;
        if (line == collector->lines_count) {
            collector->lines[line].key = *key;
            collx_histogram_init(&collector->lines[line].durations);
            collector->lines_count++;
        }
        file->cells[file->cells_count++] = (struct collx_cell){.key = *key, .line = line};
    }
    file->last_cell = at;
    return at;
}

/* Whether each rank may have to wait for all others. */
static bool is_meeting(const struct collx_trace_record *event)
{
    return event->event_small.form == COLLX_BLOCKING &&
           event->event_small.kind < COLLX_NEIGHBOR_ALLGATHER &&
           event->event_small.reason != COLLX_REASON_INTERCOMM &&
           event->event_small.reason != COLLX_REASON_BAD_ARGUMENT;
}

static int count_event(struct collx_summary *summary, uint32_t number,
                       const struct collx_trace_record *event)
{
    struct collx_collector *collector = summary->collector;
    struct collx_file *file = &collector->files[number];
    struct collx_rank *rank = &summary->ranks[number];
    uint64_t time = event->event.end_ns - event->event.begin_ns;
    struct collx_key key = key_of(summary, file, event);
    uint32_t at = cell_of(collector, file, &key);

    if (at == UINT32_MAX)
        return -ENOMEM;
    struct collx_cell *cell = &file->cells[at];
    if (!collx_histogram_add(&collector->lines[cell->line].durations, time))
        return -ENOMEM;
    cell->calls++;
    cell->time_ns += time;
    rank->calls++;
    rank->time_ns += time;
    summary->calls++;
    summary->time_ns += time;
    return is_meeting(event)
               ? collx_match(summary, number, at, file->comm[event->event.comm], event)
               : 0;
}

static int count_completion(struct collx_summary *summary, struct collx_file *file,
                            const struct collx_trace_record *completion)
{
    struct collx_trace_record event;

    if (!collx_trace_event_of(file->trace, completion, &event))
        return 0;
    struct collx_key key = key_of(summary, file, &event);
    uint32_t at = cell_of(summary->collector, file, &key);
    if (at == UINT32_MAX)
        return -ENOMEM;
    file->cells[at].completed++;
    file->cells[at].flight_ns += completion->completion.when_ns - event.event.begin_ns;
    return 0;
}

/* Read a batch.  1: the file is at its end. */
static int advance(struct collx_summary *summary, uint32_t number)
{
    struct collx_file *file = &summary->collector->files[number];

    for (int i = 0; i < BATCH; i++) {
        const struct collx_trace_record *record = collx_trace_next(file->trace, NULL);
        if (!record)
            return 1;
        int error = 0;
        if (collx_trace_tag(record) == COLLX_TRACE_EVENT) {
            file->now = record->event.end_ns + (uint64_t)file->shift;
            error = count_event(summary, number, record);
        } else {
            error = count_completion(summary, file, record);
        }
        if (error)
            return error;
    }
    return 0;
}

/* Let heap[at] sink to its place; the file that was read least far comes first. */
static void sink(const struct collx_file *files, uint32_t *heap, uint32_t count, uint32_t at)
{
    for (uint32_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && files[heap[child + 1]].now < files[heap[child]].now)
            child++;
        if (files[heap[at]].now <= files[heap[child]].now)
            return;
        uint32_t swap = heap[at];
        heap[at] = heap[child];
        heap[child] = swap;
    }
}

static void show_progress(uint64_t calls, uint64_t total)
{
    static uint64_t start, shown;
    uint64_t now = collx_clock_ns();

    start = start ? start : now;
    /* Not for what is over before anybody wonders. */
    if (now - start < 1000000000u || now - shown < 200000000u)
        return;
    shown = now;
    fprintf(stderr, "\rcollx-report: %3.0f %% of %.1f million calls",
            100.0 * (double)calls / (double)total, (double)total / 1e6);
}

int collx_collect(struct collx_summary *summary, bool progress)
{
    struct collx_collector *collector = summary->collector;
    uint32_t count = collector->files_count;
    uint32_t *heap = malloc(count * sizeof *heap);
    uint64_t total = 0;
    int result = 0;

    if (!heap)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++) {
        struct collx_file *file = &collector->files[i];
        heap[i] = i;
        file->now = file->trace->header.start_ns + (uint64_t)file->shift;
        total += file->trace->events;
    }
    for (uint32_t i = count; i-- > 0;)
        sink(collector->files, heap, count, i);
    for (uint64_t turn = 1; count; turn++) {
        result = advance(summary, heap[0]);
        if (result < 0)
            break;
        if (result) {
            /* The symbols will want files, too. */
            collx_trace_done(collector->files[heap[0]].trace);
            heap[0] = heap[--count];
        }
        sink(collector->files, heap, count, 0);
        if (progress && turn % 4096 == 0)
            show_progress(summary->calls, total);
    }
    if (progress)
        fputs("\r\033[K", stderr);
    free(heap);
    collx_matcher_report(summary);
    return result < 0 ? result : 0;
}
