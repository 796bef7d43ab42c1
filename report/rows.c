/* Makes rows of what was collected, grouped as somebody wants to see them. */
#include "report/collect.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

uint64_t collx_size_class_last(unsigned i)
{
    if (i == COLLX_SIZE_CLASSES - 1)
        return UINT64_MAX;
    return i ? 1ull << (3 * i) : 0;
}

const char *collx_reason_name(unsigned reason)
{
    static const char *const names[] = {
#define X(REASON, text) text,
        COLLX_REASONS(X)
#undef X
    };

    return reason < COLLX_REASON_COUNT ? names[reason] : "?";
}

int collx_summary_create(struct collx_summary **result, const char *path,
                         const struct collx_report_options *options, char *why, size_t size)
{
    struct collx_summary *summary = calloc(1, sizeof *summary);
    int error = -ENOMEM;

    *result = NULL;
    snprintf(why, size, "out of memory");
    if (!summary)
        return error;
    summary->collector = calloc(1, sizeof *summary->collector);
    if (summary->collector)
        error = collx_load(summary, path, options, why, size);
    /* Where nothing can be shown, the reasons are all there is to say. */
    if (error) {
        size_t length = strlen(why);
        for (uint32_t i = 0; i < summary->problems_count && length < size; i++)
            length += (size_t)snprintf(why + length, size - length, "\n  %s", summary->problems[i]);
    }
    if (!error)
        error = collx_collect(summary, options->progress);
    if (error)
        collx_summary_destroy(summary);
    else
        *result = summary;
    return error;
}

void collx_summary_destroy(struct collx_summary *summary)
{
    if (!summary)
        return;
    struct collx_collector *collector = summary->collector;
    for (uint32_t i = 0; collector && i < collector->files_count; i++) {
        struct collx_file *file = &collector->files[i];
        collx_trace_close(file->trace);
        free(file->comm);
        free(file->site);
        free(file->route);
        free(file->cells);
        collx_index_finish(&file->index);
    }
    for (uint32_t i = 0; collector && i < collector->lines_count; i++)
        collx_histogram_finish(&collector->lines[i].durations);
    for (uint32_t i = 0; collector && i < collector->instances_count; i++)
        free(collector->instances[i].there);
    if (collector) {
        free(collector->files);
        free(collector->instances);
        free(collector->lines);
        collx_index_finish(&collector->line_index);
        collx_index_finish(&collector->instance_index);
        collx_index_finish(&collector->comm_index);
        collx_index_finish(&collector->site_index);
        collx_index_finish(&collector->module_index);
        collx_matcher_destroy(collector->matcher);
        free(collector);
    }
    for (uint32_t i = 0; i < summary->problems_count; i++)
        free(summary->problems[i]);
    free(summary->problems);
    free(summary->ranks);
    free(summary->comms);
    free(summary->sites);
    free(summary->modules);
    free(summary->routes);
    free(summary);
}

static struct collx_key masked(const struct collx_key *key, unsigned by)
{
    return (struct collx_key){
        .kind = by & COLLX_BY_COLLECTIVE ? key->kind : 0,
        .form = by & COLLX_BY_COLLECTIVE ? key->form : 0,
        .size_class = by & COLLX_BY_SIZE ? key->size_class : 0,
        .reason = by & COLLX_BY_ROUTE ? key->reason : 0,
        .route = by & COLLX_BY_ROUTE ? key->route : 0,
        .comm = by & COLLX_BY_COMM ? key->comm : 0,
        .site = by & COLLX_BY_SITE ? key->site : 0,
    };
}

static bool same_row(const void *elements, uint32_t element, const void *key)
{
    return !memcmp(&((const struct collx_row *)elements)[element].key, key,
                   sizeof(struct collx_key));
}

/* Which row each line goes to. */
static int group(const struct collx_collector *collector, unsigned by, uint32_t *row_of,
                 struct collx_row **rows, uint32_t *count)
{
    struct collx_index index = {0};
    int error = -ENOMEM;

    for (uint32_t i = 0; i < collector->lines_count; i++) {
        const struct collx_line *line = &collector->lines[i];
        struct collx_key key = masked(&line->key, by);

        if (!collx_array_grow(rows, *count, sizeof **rows))
            goto done;
        row_of[i] = collx_index_find(&index, collx_key_hash(&key), same_row, *rows, &key, *count);
        if (row_of[i] == UINT32_MAX)
            goto done;
        struct collx_row *row = &(*rows)[row_of[i]];
        if (row_of[i] == *count) {
            memset(row, 0, sizeof *row);
            row->key = key;
            collx_histogram_init(&row->durations);
            ++*count;
        }
        if (!collx_histogram_merge(&row->durations, &line->durations))
            goto done;
    }
    error = 0;
done:
    collx_index_finish(&index);
    return error;
}

/* What a single rank has in a row, while its cells are added up. */
struct share {
    uint32_t calls_of; /* rank + 1 that this is about */
    uint64_t time_ns, matched, last;
    double turns;
};

static void add_rank(const struct collx_file *file, uint32_t rank, const uint32_t *row_of,
                     struct collx_row *rows, struct share *shares)
{
    for (uint32_t i = 0; i < file->cells_count; i++) {
        const struct collx_cell *cell = &file->cells[i];
        struct collx_row *row = &rows[row_of[cell->line]];
        struct share *share = &shares[row_of[cell->line]];

        if (share->calls_of != rank + 1) {
            *share = (struct share){.calls_of = rank + 1};
            row->ranks++;
        }
        share->time_ns += cell->time_ns;
        share->matched += cell->matched;
        share->last += cell->last;
        share->turns += cell->turns;
        row->calls += cell->calls;
        row->time_ns += cell->time_ns;
        row->matched += cell->matched;
        row->matched_ns += cell->matched_ns;
        row->wait_ns += cell->wait_ns;
        row->completed += cell->completed;
        row->flight_ns += cell->flight_ns;
    }
    /* Again, now that the shares are complete. */
    for (uint32_t i = 0; i < file->cells_count; i++) {
        struct collx_row *row = &rows[row_of[file->cells[i].line]];
        const struct share *share = &shares[row_of[file->cells[i].line]];

        if (share->time_ns > row->rank_max_ns) {
            row->rank_max_ns = share->time_ns;
            row->rank_max = rank;
        }
        if (share->last > row->last) {
            row->last = share->last;
            row->last_of = share->matched;
            row->turns = share->turns;
            row->rank_last = rank;
        }
    }
}

static int by_time(const void *a, const void *b)
{
    const struct collx_row *left = a, *right = b;

    if (left->time_ns != right->time_ns)
        return left->time_ns > right->time_ns ? -1 : 1;
    return memcmp(&left->key, &right->key, sizeof left->key);
}

int collx_summary_rows(const struct collx_summary *summary, unsigned by, struct collx_row **result,
                       size_t *result_count)
{
    const struct collx_collector *collector = summary->collector;
    uint32_t *row_of = calloc(collector->lines_count + 1, sizeof *row_of);
    struct collx_row *rows = NULL;
    struct share *shares = NULL;
    uint32_t count = 0;
    int error = row_of ? group(collector, by, row_of, &rows, &count) : -ENOMEM;

    if (!error)
        shares = calloc(count + 1, sizeof *shares);
    if (!shares)
        error = -ENOMEM;
    for (uint32_t i = 0; !error && i < collector->files_count; i++)
        add_rank(&collector->files[i], i, row_of, rows, shares);
    if (!error && count)
        qsort(rows, count, sizeof *rows, by_time);
    free(shares);
    free(row_of);
    if (error) {
        collx_rows_destroy(rows, count);
        rows = NULL;
        count = 0;
    }
    *result = rows;
    *result_count = count;
    return error;
}

void collx_rows_destroy(struct collx_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        collx_histogram_finish(&rows[i].durations);
    free(rows);
}

double collx_row_imbalance(const struct collx_row *row)
{
    return row->time_ns ? (double)row->rank_max_ns * row->ranks / (double)row->time_ns : 1;
}
