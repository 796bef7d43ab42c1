/* For people: what costs most comes first, and the end says in words what to think of it. */
#include "report/format.h"
#include "report/table.h"

#include "base/log.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SHORT = 16 };

/* Three digits and a unit: "480ns", "1.24ms", "20.7min". */
static const char *duration(char *text, double ns)
{
    static const struct {
        double ns;
        const char *name;
    } units[] = {{1, "ns"}, {1e3, "µs"}, {1e6, "ms"}, {1e9, "s"}, {60e9, "min"}, {3600e9, "h"}};
    /* A minute's worth of seconds is read more easily than parts of a minute. */
    static const double last[] = {999.5, 999.5e3, 999.5e6, 600e9, 7200e9};
    unsigned i = 0;

    while (i < 5 && ns >= last[i])
        i++;
    double value = ns / units[i].ns;
    int decimals = !i || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
    snprintf(text, SHORT, "%.*f%s", decimals, value, units[i].name);
    return text;
}

static const char *amount(char *text, uint64_t value)
{
    if (value < 100000)
        snprintf(text, SHORT, "%llu", (unsigned long long)value);
    else if (value < 10000000)
        snprintf(text, SHORT, "%.0fk", (double)value / 1e3);
    else
        snprintf(text, SHORT, "%.0fM", (double)value / 1e6);
    return text;
}

static double percent(uint64_t part, uint64_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 0;
}

static const char *share(char *text, uint64_t part, uint64_t whole)
{
    double value = percent(part, whole);

    if (!whole)
        snprintf(text, SHORT, "–");
    else
        snprintf(text, SHORT, value >= 99.95 || !part ? "%.0f%%" : "%.1f%%", value);
    return text;
}

static const char *size_class(unsigned i)
{
    static const char *const names[COLLX_SIZE_CLASSES] = {
        "0 B",      "≤ 8 B",     "≤ 64 B",  "≤ 512 B",  "≤ 4 KiB",
        "≤ 32 KiB", "≤ 256 KiB", "≤ 2 MiB", "≤ 16 MiB", "> 16 MiB"};

    return names[i];
}

static const char *without_mpi(const char *name)
{
    return strncmp(name, "MPI_", 4) ? name : name + 4;
}

static void comm_name(char *text, size_t size, const struct collx_report_comm *comm)
{
    int length = *comm->name ? snprintf(text, size, "%s", without_mpi(comm->name))
                 : comm->size
                     ? snprintf(text, size, "%d rank%s", comm->size, comm->size > 1 ? "s" : "")
                     : snprintf(text, size, "unknown");

    if (comm->instances > 1 && comm->size && length > 0 && (size_t)length < size)
        snprintf(text + length, size - (size_t)length, " ×%u", comm->instances);
}

static void add_columns(struct collx_table *table, unsigned by)
{
    static const char *const figures[] = {"share", "time", "calls", "min",  "median",
                                          "p99",   "max",  "imbal", "wait", "late"};

    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        collx_table_column(table, figures[i], false);
    if (by & COLLX_BY_COLLECTIVE)
        collx_table_column(table, "collective", true);
    if (by & COLLX_BY_SIZE)
        collx_table_column(table, "size", true);
    if (by & COLLX_BY_COMM)
        collx_table_column(table, "communicator", true);
    if (by & COLLX_BY_ROUTE)
        collx_table_column(table, "route", true);
    if (by & COLLX_BY_SITE)
        collx_table_column(table, "call site", true);
}

static void add_row(struct collx_table *table, const struct collx_summary *summary,
                    struct collx_symbols *symbols, const struct collx_row *row, unsigned by)
{
    const struct collx_key *key = &row->key;
    char text[COLLX_TABLE_CELL];

    collx_table_cell(table, "%s", share(text, row->time_ns, summary->seen_ns));
    collx_table_cell(table, "%s", duration(text, (double)row->time_ns));
    collx_table_cell(table, "%s", amount(text, row->calls));
    collx_table_cell(table, "%s", duration(text, (double)row->durations.min));
    collx_table_cell(table, "%s",
                     duration(text, (double)collx_histogram_quantile(&row->durations, 0.5)));
    collx_table_cell(table, "%s",
                     duration(text, (double)collx_histogram_quantile(&row->durations, 0.99)));
    collx_table_cell(table, "%s", duration(text, (double)row->durations.max));
    collx_table_cell(table, "%.2f", collx_row_imbalance(row));
    if (row->matched)
        collx_table_cell(table, "%.0f%%", percent(row->wait_ns, row->matched_ns));
    else
        collx_table_cell(table, "–");
    if (row->last)
        collx_table_cell(table, "%u: %.0f%%", summary->ranks[row->rank_last].number,
                         percent(row->last, row->last_of));
    else
        collx_table_cell(table, "–");

    if (by & COLLX_BY_COLLECTIVE)
        collx_table_cell(table, "%s", without_mpi(collx_mpi_name(key->kind, key->form)));
    if (by & COLLX_BY_SIZE)
        collx_table_cell(table, "%s", size_class(key->size_class));
    if (by & COLLX_BY_COMM) {
        comm_name(text, sizeof text, &summary->comms[key->comm]);
        collx_table_cell(table, "%s", text);
    }
    if (by & COLLX_BY_ROUTE) {
        if (key->reason == COLLX_REASON_POLICY)
            collx_table_cell(table, "%s", summary->routes[key->route]);
        else
            collx_table_cell(table, "%s (%s)", summary->routes[key->route],
                             collx_reason_name(key->reason));
    }
    if (by & COLLX_BY_SITE) {
        struct collx_symbol symbol = collx_symbols_find(symbols, key->site);
        collx_symbol_print(&symbol, text, sizeof text);
        collx_table_cell(table, "%s", text);
    }
}

static int print_rows(FILE *out, const struct collx_summary *summary, struct collx_symbols *symbols,
                      const struct collx_report_view *view, unsigned by, const char *title)
{
    struct collx_table table = {0};
    struct collx_row *rows;
    size_t count;
    int error = collx_summary_rows(summary, by, &rows, &count);

    if (error)
        return error;
    size_t shown = view->top && view->top < count ? view->top : count;
    add_columns(&table, by);
    for (size_t i = 0; i < shown; i++)
        add_row(&table, summary, symbols, &rows[i], by);
    fprintf(out, "\n%s", title);
    if (shown < count) {
        uint64_t time = 0;
        char text[SHORT];
        for (size_t i = shown; i < count; i++)
            time += rows[i].time_ns;
        fprintf(out, " (the first %zu of %zu; the others take %s together; --top 0 shows all)",
                shown, count, duration(text, (double)time));
    }
    fputs("\n\n", out);
    if (!table.failed)
        collx_table_print(&table, out, view->width);
    error = table.failed ? -ENOMEM : 0;
    collx_table_finish(&table);
    collx_rows_destroy(rows, count);
    return error;
}

/* The rank of whose run least is known. */
static const struct collx_rank *least_seen(const struct collx_summary *summary)
{
    const struct collx_rank *least = summary->ranks;

    for (uint32_t i = 1; i < summary->ranks_count; i++)
        if (percent(summary->ranks[i].seen_ns, summary->ranks[i].run_ns) <
            percent(least->seen_ns, least->run_ns))
            least = &summary->ranks[i];
    return least;
}

static void print_overview(FILE *out, const struct collx_summary *summary)
{
    const struct collx_trace_header *header = &summary->ranks[0].trace->header;
    const struct collx_rank *worst = summary->ranks, *least = least_seen(summary);
    time_t start = (time_t)(header->start_realtime_ns / 1000000000u);
    char when[64] = "", text[SHORT];
    uint64_t longest = 0;
    struct tm calendar;

    for (uint32_t i = 0; i < summary->ranks_count; i++) {
        const struct collx_rank *rank = &summary->ranks[i];
        if (percent(rank->time_ns, rank->seen_ns) > percent(worst->time_ns, worst->seen_ns))
            worst = rank;
        longest = rank->run_ns > longest ? rank->run_ns : longest;
    }
    if (localtime_r(&start, &calendar))
        strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S", &calendar);

    const char *command = *header->command ? header->command : "(unknown command)";
    fprintf(out, "%.*s\n", (int)collx_text_fit(command, 100), command);
    /* Open MPI goes on about where it was packaged. */
    int mpi = (int)strcspn(header->mpi, ",");
    fprintf(out, "  %u rank%s on %u node%s (%s%s), %.*s%scollx %s, begun %s\n",
            summary->ranks_count, summary->ranks_count > 1 ? "s" : "", summary->nodes,
            summary->nodes > 1 ? "s" : "", header->host, summary->nodes > 1 ? ", …" : "", mpi,
            header->mpi, mpi ? ", " : "", header->release, when);
    fprintf(out, "  %s from MPI_Init to the end", duration(text, (double)longest));
    fprintf(out, "; %.1f%% of the run time in %llu collective calls",
            percent(summary->time_ns, summary->seen_ns), (unsigned long long)summary->calls);
    if (summary->ranks_count > 1)
        fprintf(out, ", most on rank %u: %.1f%%", worst->number,
                percent(worst->time_ns, worst->seen_ns));
    putc('\n', out);
    if (least->seen_ns < least->run_ns) {
        fprintf(out, "  events are missing, on rank %u after %s", least->number,
                duration(text, (double)least->seen_ns));
        fprintf(out, " of %s (see the notes): all shares are of the time before that\n",
                duration(text, (double)least->run_ns));
    }
    if (summary->matched)
        fprintf(out,
                "  %.0f%% of the time in collectives was waiting for the last rank to arrive%s\n",
                percent(summary->wait_ns, summary->time_ns),
                summary->nodes > 1 ? " (between nodes only as exact as their clocks agree)" : "");
}

static int by_late(const void *a, const void *b)
{
    const struct collx_rank *left = *(const struct collx_rank *const *)a;
    const struct collx_rank *right = *(const struct collx_rank *const *)b;

    if (left->last != right->last)
        return left->last > right->last ? -1 : 1;
    return left->number < right->number ? -1 : left->number > right->number;
}

static int print_ranks(FILE *out, const struct collx_summary *summary,
                       const struct collx_report_view *view)
{
    static const char *const titles[] = {"rank", "run", "in collectives", "share", "calls",
                                         "wait", "late"};
    const struct collx_rank **ranks = calloc(summary->ranks_count, sizeof(struct collx_rank *));
    struct collx_table table = {0};
    char text[SHORT];
    uint32_t shown = summary->ranks_count;

    if (!ranks)
        return -ENOMEM;
    for (uint32_t i = 0; i < summary->ranks_count; i++)
        ranks[i] = &summary->ranks[i];
    qsort(ranks, summary->ranks_count, sizeof(struct collx_rank *), by_late);
    if (view->top && view->top < shown)
        shown = (uint32_t)view->top;
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
        collx_table_column(&table, titles[i], false);
    collx_table_column(&table, "host", true);
    for (uint32_t i = 0; i < shown; i++) {
        const struct collx_rank *rank = ranks[i];
        collx_table_cell(&table, "%u", rank->number);
        collx_table_cell(&table, "%s", duration(text, (double)rank->run_ns));
        collx_table_cell(&table, "%s", duration(text, (double)rank->time_ns));
        collx_table_cell(&table, "%s", share(text, rank->time_ns, rank->seen_ns));
        collx_table_cell(&table, "%s", amount(text, rank->calls));
        collx_table_cell(&table, "%s", share(text, rank->wait_ns, rank->seen_ns));
        collx_table_cell(&table, "%s", share(text, rank->last, rank->matched));
        collx_table_cell(&table, "%s", rank->trace->header.host);
    }
    fprintf(out, "\nRanks, the latest first");
    if (shown < summary->ranks_count)
        fprintf(out, " (%u of %u; --top 0 shows all)", shown, summary->ranks_count);
    fputs("\n\n", out);
    if (!table.failed)
        collx_table_print(&table, out, view->width);
    int error = table.failed ? -ENOMEM : 0;
    collx_table_finish(&table);
    free(ranks);
    return error;
}

/* The communicators whose ranks share memory; nothing where none does. */
static int print_shared(FILE *out, const struct collx_summary *summary,
                        const struct collx_report_view *view)
{
    static const char *const titles[] = {"memory of each", "ranks"};
    struct collx_table table = {0};
    char text[COLLX_TABLE_CELL];
    uint32_t all = 0, shown = 0;

    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
        collx_table_column(&table, titles[i], false);
    collx_table_column(&table, "communicator", true);
    for (uint32_t i = 0; i < summary->comms_count; i++) {
        const struct collx_report_comm *comm = &summary->comms[i];
        if (!comm->shared || (all++, view->top && shown == view->top))
            continue;
        shown++;
        collx_table_cell(&table, "%.1f KiB", (double)comm->shared / 1024);
        collx_table_cell(&table, "%d", comm->size);
        comm_name(text, sizeof text, comm);
        collx_table_cell(&table, "%s", text);
    }
    if (shown)
        fputs("\nMemory that ranks share", out);
    if (shown < all)
        fprintf(out, " (%u of %u; --top 0 shows all)", shown, all);
    if (shown)
        fputs("\n\n", out);
    if (shown && !table.failed)
        collx_table_print(&table, out, view->width);
    int error = table.failed ? -ENOMEM : 0;
    collx_table_finish(&table);
    return error;
}

static void print_paragraph(FILE *out, const char *text)
{
    enum { WIDTH = 96 };
    int column = 0;

    putc('\n', out);
    while (*text) {
        int word = (int)strcspn(text, " ");
        if (column && column + 1 + word > WIDTH) {
            putc('\n', out);
            column = 0;
        }
        column += fprintf(out, column ? " %.*s" : "%.*s", word, text);
        text += word + strspn(text + word, " ");
    }
    putc('\n', out);
}

/* Whether somebody was last twice as often as was its turn: one that is slow, and not just anybody.
 * Of two ranks that would be always; three calls of four will do.  And more often than the
 * unluckiest of so many equal ranks is by chance, in nineteen reports of twenty. */
static bool is_one_late(const struct collx_row *row)
{
    const double turns = row->turns, calls = (double)row->last_of, last = (double)row->last;
    const double spread = sqrt(turns * (1 - turns / calls));
    const double luck = turns + sqrt(2 * log(20 * calls / turns)) * spread;

    return last >= fmin(2 * turns, 0.75 * calls) && last >= luck;
}

/* In words, about the collective that costs most. */
static int print_insight(FILE *out, const struct collx_summary *summary)
{
    struct collx_row *rows;
    size_t count;
    int error = collx_summary_rows(summary, COLLX_BY_COLLECTIVE, &rows, &count);
    char text[1024];

    if (error || !count)
        return error;
    const struct collx_row *row = &rows[0];
    double wait = percent(row->wait_ns, row->time_ns);
    /* In calls that were not found on all ranks there may have been waiting as well. */
    double most = wait + percent(row->time_ns - row->matched_ns, row->time_ns);
    double late = percent(row->last, row->last_of);

    int length = snprintf(text, sizeof text, "%.0f%% of the time in collectives is %s.",
                          percent(row->time_ns, summary->time_ns),
                          collx_mpi_name(row->key.kind, row->key.form));
    char *more = text + length;
    size_t room = sizeof text - (size_t)length;
    if (row->matched && wait >= 25 && is_one_late(row))
        snprintf(
            more, room,
            " %.0f%% of that was waiting for the last rank; rank %u was last in %.0f%% of its "
            "calls. What that rank does before them is worth a look: faster collectives do not "
            "shorten these waits.",
            wait, summary->ranks[row->rank_last].number, late);
    else if (row->matched && wait >= 25)
        snprintf(more, room,
                 " %.0f%% of that was waiting for the last rank, now this one, now that one: the "
                 "work between the calls takes unequal time. Faster collectives do not shorten "
                 "these waits.",
                 wait);
    else if (row->matched && most < 25)
        snprintf(more, room,
                 " Only %.0f%% of that was waiting for the last rank: the rest is the collective "
                 "itself, which a faster route shortens.",
                 wait);
    length = (int)strlen(text);
    const struct collx_rank *least = least_seen(summary);
    if (percent(summary->time_ns, summary->seen_ns) < 2 && least->seen_ns == least->run_ns)
        snprintf(text + length, sizeof text - (size_t)length,
                 " All collectives together take %.1f%% of the run time: there is little to win.",
                 percent(summary->time_ns, summary->seen_ns));
    print_paragraph(out, text);
    collx_rows_destroy(rows, count);
    return 0;
}

static void print_problems(FILE *out, const struct collx_summary *summary,
                           const struct collx_report_view *view)
{
    uint32_t shown = summary->problems_count;

    if (view->top && view->top < shown)
        shown = (uint32_t)view->top;
    if (shown)
        fputs("\nNotes\n\n", out);
    for (uint32_t i = 0; i < shown; i++)
        fprintf(out, "  %s\n", summary->problems[i]);
    if (shown < summary->problems_count)
        fprintf(out, "  and %u more; --top 0 shows all\n", summary->problems_count - shown);
}

static int print(FILE *out, const struct collx_summary *summary, struct collx_symbols *symbols,
                 const struct collx_report_view *view)
{
    int error = 0;

    print_overview(out, summary);
    if (summary->calls && view->by)
        error = print_rows(out, summary, symbols, view, view->by, "Where the time goes");
    else if (summary->calls)
        error = print_rows(out, summary, symbols, view, COLLX_BY_ALL & ~COLLX_BY_SITE,
                           "Where the time goes");
    if (!error && summary->calls && !view->by && summary->sites_count > 1)
        error = print_rows(out, summary, symbols, view, COLLX_BY_COLLECTIVE | COLLX_BY_SITE,
                           "Where in the program");
    if (!error && summary->calls && !view->by && summary->ranks_count > 1)
        error = print_ranks(out, summary, view);
    if (!error && !view->by)
        error = print_shared(out, summary, view);
    if (!error && summary->calls) {
        fputs(
            "\n  share: of the run time of all ranks.  imbal: time of the busiest rank by the "
            "mean.\n"
            "  wait: share of the time before the last rank had arrived.  late: the rank that was\n"
            "  last most often, and in how many of its calls.\n",
            out);
        error = print_insight(out, summary);
    } else if (!error) {
        fputs("\nNo collective was called.\n", out);
    }
    if (!error)
        print_problems(out, summary, view);
    return error;
}

const struct collx_format collx_format_text = {.name = "text", .top = 12, .print = print};
