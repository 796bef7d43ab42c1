/* Everything, for programs; docs/report.md lists the members. */
#include "report/format.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>

enum { FORMAT_VERSION = 1 };

static json_t *text(const char *value)
{
    return value ? json_string(value) : json_null();
}

static json_t *integer(uint64_t value)
{
    return json_integer((json_int_t)value);
}

static json_t *ratio(uint64_t part, uint64_t whole)
{
    return whole ? json_real((double)part / (double)whole) : json_null();
}

/* json_pack takes the references; it fails, and so does all above it, when one of them is NULL. */
static json_t *pack_run(const struct collx_summary *summary)
{
    const struct collx_trace_header *header = &summary->ranks[0].trace->header;
    char job[24];
    uint64_t longest = 0;

    snprintf(job, sizeof job, "%016" PRIx64, summary->job);
    for (uint32_t i = 0; i < summary->ranks_count; i++)
        if (summary->ranks[i].run_ns > longest)
            longest = summary->ranks[i].run_ns;
    return json_pack("{s:o, s:o, s:o, s:o, s:i, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
                     "command", text(header->command), "mpi", text(header->mpi), "collx",
                     text(header->release), "job", text(job), "ranks", (int)summary->ranks_count,
                     "nodes", (int)summary->nodes, "begun_ns", integer(header->start_realtime_ns),
                     "duration_ns", integer(longest), "calls", integer(summary->calls), "time_ns",
                     integer(summary->time_ns), "run_share",
                     ratio(summary->time_ns, summary->seen_ns), "matched_calls",
                     integer(summary->matched), "wait_ns", integer(summary->wait_ns), "wait_share",
                     ratio(summary->wait_ns, summary->matched_ns));
}

static json_t *pack_rank(const struct collx_rank *rank)
{
    const struct collx_trace_header *header = &rank->trace->header;

    return json_pack("{s:o, s:o, s:i, s:o, s:o, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "rank",
                     integer(rank->number), "host", text(header->host), "pid", (int)header->pid,
                     "run_ns", integer(rank->run_ns), "seen_ns", integer(rank->seen_ns), "complete",
                     header->end_ns && !header->dropped && !rank->trace->lost, "dropped",
                     integer(header->dropped), "calls", integer(rank->calls), "time_ns",
                     integer(rank->time_ns), "run_share", ratio(rank->time_ns, rank->seen_ns),
                     "matched_calls", integer(rank->matched), "wait_ns", integer(rank->wait_ns),
                     "last_count", integer(rank->last));
}

static int set_key(json_t *to, const struct collx_summary *summary, struct collx_symbols *symbols,
                   const struct collx_key *key, unsigned by)
{
    int failed = 0;

    if (by & COLLX_BY_COLLECTIVE)
        failed |= json_object_set_new(to, "collective", text(collx_mpi_name(key->kind, key->form)));
    if (by & COLLX_BY_COMM) {
        const struct collx_report_comm *comm = &summary->comms[key->comm];
        failed |= json_object_set_new(to, "comm", text(comm->name));
        failed |= json_object_set_new(to, "comm_size", json_integer(comm->size));
        failed |= json_object_set_new(to, "comm_instances", integer(comm->instances));
        failed |= json_object_set_new(to, "comm_shared_bytes", integer(comm->shared));
    }
    if (by & COLLX_BY_SIZE) {
        bool last = key->size_class == COLLX_SIZE_CLASSES - 1;
        uint64_t first = key->size_class ? collx_size_class_last(key->size_class - 1u) + 1 : 0;
        failed |= json_object_set_new(to, "bytes_min", integer(first));
        failed |= json_object_set_new(
            to, "bytes_max", last ? json_null() : integer(collx_size_class_last(key->size_class)));
    }
    if (by & COLLX_BY_ROUTE) {
        failed |= json_object_set_new(to, "route", text(summary->routes[key->route]));
        failed |= json_object_set_new(to, "reason", text(collx_reason_name(key->reason)));
    }
    if (by & COLLX_BY_SITE) {
        struct collx_symbol symbol = collx_symbols_find(symbols, key->site);
        failed |= json_object_set_new(to, "function", text(symbol.function));
        failed |= json_object_set_new(to, "file", text(symbol.file));
        failed |=
            json_object_set_new(to, "line", symbol.file ? json_integer(symbol.line) : json_null());
        failed |= json_object_set_new(to, "module", text(*symbol.module ? symbol.module : NULL));
        failed |= json_object_set_new(to, "offset", integer(symbol.offset));
    }
    return failed;
}

static json_t *pack_row(const struct collx_summary *summary, struct collx_symbols *symbols,
                        const struct collx_row *row, unsigned by)
{
    json_t *to = json_object();
    json_t *figures = json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:i, s:f, s:o}", "calls", integer(row->calls),
        "time_ns", integer(row->time_ns), "run_share", ratio(row->time_ns, summary->seen_ns),
        "min_ns", integer(row->durations.min), "median_ns",
        integer(collx_histogram_quantile(&row->durations, 0.5)), "p99_ns",
        integer(collx_histogram_quantile(&row->durations, 0.99)), "max_ns",
        integer(row->durations.max), "ranks", (int)row->ranks, "imbalance",
        collx_row_imbalance(row), "busiest_rank", integer(summary->ranks[row->rank_max].number));
    json_t *waits = json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "matched_calls", integer(row->matched),
        "matched_ns", integer(row->matched_ns), "wait_ns", integer(row->wait_ns), "wait_share",
        ratio(row->wait_ns, row->matched_ns), "last_rank",
        row->last ? integer(summary->ranks[row->rank_last].number) : json_null(), "last_count",
        row->last ? integer(row->last) : json_null(), "last_share", ratio(row->last, row->last_of),
        "completed_calls", integer(row->completed), "completion_mean_ns",
        row->completed ? integer(row->flight_ns / row->completed) : json_null());
    int failed = !to || !figures || !waits || set_key(to, summary, symbols, &row->key, by) ||
                 json_object_update(to, figures) || json_object_update(to, waits);

    json_decref(figures);
    json_decref(waits);
    if (failed) {
        json_decref(to);
        return NULL;
    }
    return to;
}

static int print(FILE *out, const struct collx_summary *summary, struct collx_symbols *symbols,
                 const struct collx_report_view *view)
{
    unsigned by = view->by ? view->by : COLLX_BY_ALL;
    struct collx_row *rows;
    size_t count;
    int error = collx_summary_rows(summary, by, &rows, &count);
    json_t *ranks = json_array(), *list = json_array(), *problems = json_array();
    bool failed = error;

    for (uint32_t i = 0; i < summary->ranks_count; i++)
        failed |= json_array_append_new(ranks, pack_rank(&summary->ranks[i])) != 0;
    for (size_t i = 0; i < count && (!view->top || i < view->top); i++)
        failed |= json_array_append_new(list, pack_row(summary, symbols, &rows[i], by)) != 0;
    for (uint32_t i = 0; i < summary->problems_count; i++)
        failed |= json_array_append_new(problems, text(summary->problems[i])) != 0;

    json_t *all = json_pack("{s:i, s:o, s:o, s:o, s:o}", "collx_report", FORMAT_VERSION, "run",
                            pack_run(summary), "ranks", ranks, "rows", list, "problems", problems);
    if (all && !failed) {
        json_dumpf(all, out, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
        putc('\n', out);
    }
    error = error ? error : all && !failed ? 0 : -ENOMEM;
    json_decref(all);
    collx_rows_destroy(rows, count);
    return error;
}

const struct collx_format collx_format_json = {.name = "json", .print = print};
