/* What was measured, by state of the machine: text for people, CSV for programs, SVG from that. */
#include "bench/bench.h"

#include <stdlib.h>
#include <string.h>

extern const char bench_plot[]; /* plot.gp */

/* What a point's rounds in one state come to. */
struct summary {
    int rounds;
    double flag, bare, copy, read;
    double limit; /* what no collective can beat by much; 0: nobody knows */
    struct collx_spread ns[ROUTES_MOST],
        ratio[ROUTES_MOST]; /* ratio: MPI library's time to this one's */
};

enum value { FLAG, BARE, COPY, READ, TIME, RATIO };

static double value_of(const struct round *round, enum value value, int route)
{
    switch (value) {
    case FLAG:
        return round->flag;
    case BARE:
        return round->bare;
    case COPY:
        return round->copy;
    case READ:
        return round->read;
    case TIME:
        return round->ns[route];
    case RATIO:
        break;
    }
    return round->ns[route] > 0 ? round->ns[0] / round->ns[route] : 0;
}

/* A call of one rank may take as good as nothing; all else that takes no time was not measured. */
static bool is_measured(enum value value, double one)
{
    return one > 0 || (value == TIME && one == 0);
}

/* Of the rounds in a state that have this value. */
static struct collx_spread spread_in(const struct point *point, enum state state, enum value value,
                                     int route)
{
    double *values = malloc((size_t)(point->rounds + 1) * sizeof *values);
    int n = 0;

    if (!values)
        fail("out of memory");
    for (int i = 0; i < point->rounds; i++) {
        double one = value_of(&point->round[i], value, route);
        if (point->round[i].state == state && is_measured(value, one))
            values[n++] = one;
    }
    struct collx_spread spread = collx_spread_of(values, n);
    free(values);
    return spread;
}

/* Everybody has to hear that the others are there, and the bytes have to get from the one's caches
 * into the other's buffer; both may be under way at once.  Not of a rank alone, nor where the copy
 * was not measured, unless it takes as good as nothing. */
static double limit_of(const struct point *point, const struct summary *summary)
{
    if (machine.size < 2 || (point->bytes >= 4096 && summary->read <= 0))
        return 0;
    return summary->bare > summary->read ? summary->bare : summary->read;
}

static struct summary summarize(const struct point *point, enum state state)
{
    struct summary summary = {.flag = spread_in(point, state, FLAG, 0).median,
                              .bare = spread_in(point, state, BARE, 0).median,
                              .copy = spread_in(point, state, COPY, 0).median,
                              .read = spread_in(point, state, READ, 0).median};

    for (int i = 0; i < point->rounds; i++)
        summary.rounds += point->round[i].state == state;
    for (int r = 0; r < route_count; r++) {
        summary.ns[r] = spread_in(point, state, TIME, r);
        summary.ratio[r] = spread_in(point, state, RATIO, r);
    }
    summary.limit = limit_of(point, &summary);
    return summary;
}

/* The route that a user gets; the MPI library's where there is no collx. */
static int users_route(void)
{
    for (int r = 0; r < route_count; r++)
        if (!strcmp(routes[r].name, "collx"))
            return r;
    return 0;
}

/* Whether a route was measured anywhere, so that it gets a column. */
static bool has_column(int route, const struct point *points, int count)
{
    for (int i = 0; i < count; i++)
        if (route_counts(route, points[i].kind, points[i].bytes))
            return true;
    return false;
}

static void print_point(FILE *to, const struct point *point, const struct summary *summary,
                        const bool *column, bool limits)
{
    if (!summary->rounds)
        return;
    fprintf(to, "%-9s %8zu", collx_kind_name(point->kind), point->bytes);
    for (int r = 0; r < route_count; r++) {
        const struct collx_spread *ns = &summary->ns[r], *ratio = &summary->ratio[r];
        if (!column[r])
            continue;
        if (!ns->n)
            fprintf(to, " |%*s", r ? 41 : 15, "");
        else
            fprintf(to, " |%10.3f %3.0f%%", ns->median / 1e3,
                    ns->median > 0 ? 50 * (ns->high - ns->low) / ns->median : 0);
        if (ns->n && r && ratio->n)
            fprintf(to, " %7.2fx (%6.2f,%7.2f)", ratio->median, ratio->low, ratio->high);
        else if (ns->n && r)
            fprintf(to, "%26s", "");
    }
    if (summary->limit > 0 && summary->ns[users_route()].n)
        fprintf(to, " |%10.3f %5.1fx", summary->limit / 1e3,
                summary->ns[users_route()].median / summary->limit);
    else if (limits)
        fprintf(to, " |%17s", "");
    fprintf(to, " | %6d  %s\n", summary->rounds,
            route_runs(&routes[users_route()], point->kind, point->bytes));
}

static void print_heading(FILE *to, const struct point *points, const struct summary *summaries,
                          int count, const char *state)
{
    double flags = 0, largest = 0, copied = 0;
    int rounds = 0;

    for (int i = 0; i < count; i++) {
        rounds += summaries[i].rounds;
        flags += summaries[i].flag * summaries[i].rounds;
        if (summaries[i].copy > 0 && (double)points[i].bytes >= largest) {
            largest = (double)points[i].bytes;
            copied = summaries[i].copy;
        }
    }
    fprintf(to, "\n%s: %d rounds", state, rounds);
    if (flags > 0)
        fprintf(to, "; one cache line there and back: %.0f ns, one way %.0f ns", 2 * flags / rounds,
                flags / rounds);
    if (copied > 0)
        fprintf(to, "; memcpy of %.0f bytes by every rank at once: %.1f GB/s each", largest,
                largest / copied);
    fprintf(to, "\n\n");
}

static void print_state(FILE *to, const struct point *points, int count, enum state state)
{
    static struct summary summaries[POINTS_MOST];
    bool column[ROUTES_MOST], limits = false;
    int rounds = 0;

    for (int i = 0; i < count; i++) {
        summaries[i] = summarize(&points[i], state);
        rounds += summaries[i].rounds;
        limits = limits || summaries[i].limit > 0;
    }
    if (!rounds)
        return;
    print_heading(to, points, summaries, count, machine_state_name(state));
    fprintf(to, "%-9s %8s", "us a call", "bytes");
    for (int r = 0; r < route_count; r++) {
        column[r] = has_column(r, points, count);
        if (column[r])
            fprintf(to, " |%10s %4s", routes[r].name, "+-");
        if (column[r] && r)
            fprintf(to, " %8s %16s", "ratio ", "(quartiles)");
    }
    if (limits)
        fprintf(to, " |%10s %6s", "limit", users_route() ? "collx" : "mpi");
    fprintf(to, " | rounds, what collx runs\n");
    for (int i = 0; i < count; i++)
        print_point(to, &points[i], &summaries[i], column, limits);
}

void print_text(FILE *to, const struct point *points, int count)
{
    int dropped = 0, all = 0;

    for (int i = 0; i < count; i++)
        for (int k = 0; k < points[i].rounds; k++, all++)
            dropped += points[i].round[k].state == STATE_NONE;
    for (int state = 0; state < STATES; state++)
        print_state(to, points, count, (enum state)state);
    fprintf(to, "\nratio: the MPI library's time by this route's, round by round. +-: half of what "
                "lies between the\nquartiles.");
    if (!machine.crowded)
        fprintf(
            to,
            " limit: the longer of a bare exchange of flags and a bare copy of the bytes out of "
            "what\nanother rank has just written, in the same rounds; and how many times that it "
            "takes.");
    fprintf(to,
            "\n%d of %d rounds were dropped: the machine changed, or a cache line took more than "
            "2 us.\n",
            dropped, all);
}

/* "Open MPI v4.1.4, package: ...", "MPICH Version:\t4.0.2\n...": the name and the number. */
static void mpi_name(char *name, size_t size)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length;

    MPI_Get_library_version(version, &length);
    const char *digit = strpbrk(version, "0123456789");
    snprintf(name, size, "%s %.*s", strncmp(version, "Open MPI", 8) ? "MPICH" : "Open MPI",
             digit ? (int)strspn(digit, "0123456789.") : 0, digit ? digit : "");
}

void print_csv(FILE *to, const struct point *points, int count)
{
    char mpi[128];

    mpi_name(mpi, sizeof mpi);
    fprintf(to, "mpi,ranks,cpus,state,flag_ns,collective,bytes,route,rounds,us,us_25,us_75,"
                "ratio,ratio_25,ratio_75,limit_us,runs\n");
    for (int s = 0; s < STATES; s++)
        for (int i = 0; i < count; i++) {
            const struct point *point = &points[i];
            struct summary summary = summarize(point, (enum state)s);
            const char *kind = collx_kind_name(point->kind);
            for (int r = 0; r < route_count; r++) {
                const struct collx_spread *ns = &summary.ns[r], *ratio = &summary.ratio[r];
                if (!ns->n)
                    continue;
                fprintf(to, "%s,%d,%d,%s,%.1f,%s,%zu,%s,%d,", mpi, machine.size, machine.cpus,
                        machine_state_name((enum state)s), summary.flag, kind, point->bytes,
                        routes[r].name, ns->n);
                fprintf(to, "%.4f,%.4f,%.4f,", ns->median / 1e3, ns->low / 1e3, ns->high / 1e3);
                /* No round may have a time of both routes. */
                if (ratio->n)
                    fprintf(to, "%.3f,%.3f,%.3f,", ratio->median, ratio->low, ratio->high);
                else
                    fprintf(to, ",,,");
                if (summary.limit > 0)
                    fprintf(to, "%.4f", summary.limit / 1e3);
                /* Last and quoted, since parameters stand between commas. */
                fprintf(to, ",\"%s\"\n", route_runs(&routes[r], point->kind, point->bytes));
            }
        }
}

bool print_svg(const char *svg, const char *csv)
{
    /* gnuplot is no part of the job. */
    unsetenv("LD_PRELOAD");
    /* Where a locale has decimal commas its awk reads 0.5 as 0. */
    setenv("LC_ALL", "C.UTF-8", 1);
    FILE *gnuplot = popen("gnuplot", "w");

    if (!gnuplot)
        return false;
    /* awk would take a bare "n=2.csv" for an assignment. */
    fprintf(gnuplot, "files = '%s%s'; svg = '%s'\n%s", *csv == '/' ? "" : "./", csv, svg,
            bench_plot);
    return pclose(gnuplot) == 0;
}
