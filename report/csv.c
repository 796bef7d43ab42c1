/* One line a row, for spreadsheets and scripts: RFC 4180, plain numbers, times in nanoseconds. */
#include "report/format.h"

#include <string.h>

static void text(FILE *out, const char *value)
{
    if (value && strpbrk(value, ",\"\r\n")) {
        putc('"', out);
        for (; *value; value++) {
            if (*value == '"')
                putc('"', out);
            putc(*value, out);
        }
        putc('"', out);
    } else if (value) {
        fputs(value, out);
    }
    putc(',', out);
}

static void number(FILE *out, uint64_t value)
{
    fprintf(out, "%llu,", (unsigned long long)value);
}

static void ratio(FILE *out, uint64_t part, uint64_t whole)
{
    if (whole)
        fprintf(out, "%.6g", (double)part / (double)whole);
    putc(',', out);
}

static void skip(FILE *out, int columns)
{
    while (columns--)
        putc(',', out);
}

static void print_key(FILE *out, const struct collx_summary *summary, struct collx_symbols *symbols,
                      const struct collx_key *key, unsigned by)
{
    if (by & COLLX_BY_COLLECTIVE)
        text(out, collx_mpi_name(key->kind, key->form));
    else
        skip(out, 1);
    if (by & COLLX_BY_COMM) {
        const struct collx_report_comm *comm = &summary->comms[key->comm];
        text(out, comm->name);
        number(out, (uint64_t)comm->size);
        number(out, comm->instances);
        number(out, comm->shared);
    } else {
        skip(out, 4);
    }
    if (by & COLLX_BY_SIZE) {
        number(out, key->size_class ? collx_size_class_last(key->size_class - 1u) + 1 : 0);
        if (key->size_class < COLLX_SIZE_CLASSES - 1)
            number(out, collx_size_class_last(key->size_class));
        else
            skip(out, 1); /* no end */
    } else {
        skip(out, 2);
    }
    if (by & COLLX_BY_ROUTE) {
        text(out, summary->routes[key->route]);
        text(out, collx_reason_name(key->reason));
    } else {
        skip(out, 2);
    }
    struct collx_symbol symbol = {.module = ""};
    if (by & COLLX_BY_SITE)
        symbol = collx_symbols_find(symbols, key->site);
    text(out, symbol.function);
    text(out, symbol.file);
    if (symbol.file)
        number(out, (uint64_t)symbol.line);
    else
        skip(out, 1);
    text(out, symbol.module);
    if (*symbol.module)
        fprintf(out, "0x%llx,", (unsigned long long)symbol.offset);
    else
        skip(out, 1);
}

static void print_row(FILE *out, const struct collx_summary *summary, const struct collx_row *row)
{
    number(out, row->calls);
    number(out, row->time_ns);
    ratio(out, row->time_ns, summary->seen_ns);
    number(out, row->durations.min);
    number(out, collx_histogram_quantile(&row->durations, 0.5));
    number(out, collx_histogram_quantile(&row->durations, 0.99));
    number(out, row->durations.max);
    number(out, row->ranks);
    fprintf(out, "%.6g,", collx_row_imbalance(row));
    number(out, summary->ranks[row->rank_max].number);
    number(out, row->matched);
    number(out, row->matched_ns);
    number(out, row->wait_ns);
    ratio(out, row->wait_ns, row->matched_ns);
    if (row->last) {
        number(out, summary->ranks[row->rank_last].number);
        number(out, row->last);
        ratio(out, row->last, row->last_of);
    } else {
        skip(out, 3);
    }
    number(out, row->completed);
    if (row->completed)
        fprintf(out, "%llu", (unsigned long long)(row->flight_ns / row->completed));
    fputs("\r\n", out);
}

static int print(FILE *out, const struct collx_summary *summary, struct collx_symbols *symbols,
                 const struct collx_report_view *view)
{
    unsigned by = view->by ? view->by : COLLX_BY_ALL;
    struct collx_row *rows;
    size_t count;
    int error = collx_summary_rows(summary, by, &rows, &count);

    if (error)
        return error;
    fputs("collective,comm,comm_size,comm_instances,comm_shared_bytes,bytes_min,bytes_max,"
          "route,reason,function,file,line,module,offset,"
          "calls,time_ns,run_share,min_ns,median_ns,p99_ns,max_ns,ranks,imbalance,busiest_rank,"
          "matched_calls,matched_ns,wait_ns,wait_share,last_rank,last_count,last_share,"
          "completed_calls,completion_mean_ns\r\n",
          out);
    for (size_t i = 0; i < count && (!view->top || i < view->top); i++) {
        print_key(out, summary, symbols, &rows[i].key, by);
        print_row(out, summary, &rows[i]);
    }
    collx_rows_destroy(rows, count);
    return 0;
}

const struct collx_format collx_format_csv = {.name = "csv", .print = print};
