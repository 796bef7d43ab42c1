/* collx-bench: collectives through collx and through the MPI library itself, in alternation.
 *
 * All routes are measured in one job, round by round in turn, so that a machine that changes its
 * speed changes it for all; each round stands between two looks at the state of the machine.  The
 * latency of each call is measured for itself: all ranks start at the same moment, and the call is
 * over when it is over on the last one.
 */
#include "bench/bench.h"

#include "base/hash.h"
#include "base/parse.h"
#include "bench/elements.h"

#include <argp.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { KEY_CALLS = 1000, KEY_CSV, KEY_DATA, KEY_LIFE, KEY_OF, KEY_PEERS, KEY_ROOT, KEY_SVG };

enum { LIVES_MOST = 16 };

/* Visible, or glibc would go on with its own, empty one. */
__attribute__((visibility("default"))) const char *argp_program_version =
    "collx-bench " COLLX_RELEASE;

static struct {
    bool kind[COLLX_ROUTED];
    struct collx_range sizes;
    int64_t step;
    struct manner manner;
    const char *csv, *svg, *peers;
    bool overhead;
    int life[LIVES_MOST], lives; /* calls of a communicator */
} options = {
    .kind = {true, true, true},
    .sizes = {1, 16 << 20},
    .step = 2,
    .manner = {.seconds = 60, .batch_us = 300, .of = "numbers"},
};

void fail(const char *format, ...)
{
    char text[512];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    /* Whole: other ranks may have as much to say. */
    fprintf(stderr, "collx-bench: %s\n", text);
    /* MPICH's launcher passes nothing on that it has not read before it hears of the abort. */
    usleep(200000);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

static bool has_spectator(void)
{
    return machine.rank == 0 && isatty(STDERR_FILENO);
}

void show_progress(double elapsed, double seconds, int sweep)
{
    if (has_spectator())
        fprintf(stderr, "\rcollx-bench: %3.0f of %.0f s, sweep %d ", elapsed, seconds, sweep);
}

void show_progress_end(void)
{
    if (has_spectator())
        fputc('\n', stderr);
}

static void parse_kinds(char *list, struct argp_state *state)
{
    char *keep = NULL;
    bool any = false;

    memset(options.kind, 0, sizeof options.kind);
    for (char *word = strtok_r(list, ",", &keep); word; word = strtok_r(NULL, ",", &keep)) {
        struct collx_nearest nearest = {.word = word};
        char hint[COLLX_WHY_MAX];
        bool found = false;
        for (unsigned kind = 0; kind < COLLX_ROUTED; kind++) {
            collx_nearest_offer(&nearest, collx_kind_name(kind));
            if (!strcmp(word, collx_kind_name(kind)))
                found = options.kind[kind] = true;
        }
        if (!found)
            argp_error(state, "'%s' cannot be measured%s", word,
                       collx_nearest_hint(&nearest, hint, sizeof hint));
        any = true;
    }
    if (!any)
        argp_error(state, "--collectives: name barrier, bcast or allreduce");
}

static void parse_lives(char *list, struct argp_state *state)
{
    char *keep = NULL, why[COLLX_WHY_MAX];
    int64_t calls;

    options.lives = 0;
    for (char *word = strtok_r(list, ",", &keep); word; word = strtok_r(NULL, ",", &keep)) {
        if (options.lives == LIVES_MOST)
            argp_error(state, "--life: no more than %d numbers", LIVES_MOST);
        if (collx_value_parse(COLLX_NUMBER, word, 1, 10000000, &calls, why, sizeof why))
            argp_error(state, "--life: %s", why);
        options.life[options.lives++] = (int)calls;
    }
    if (!options.lives)
        argp_error(state, "--life: say how many calls, as in 1,20,100");
}

static double parse_positive(const char *text, const char *what, struct argp_state *state)
{
    char *end;
    double value = strtod(text, &end);

    if (end == text || *end || !(value > 0 && value < 1e6))
        argp_error(state, "'%s' is not %s", text, what);
    return value;
}

/* Whether it is the second of two words. */
static bool parse_choice(const char *text, const char *option, const char *first,
                         const char *second, struct argp_state *state)
{
    bool is_second = !strcmp(text, second);

    if (!is_second && strcmp(text, first))
        argp_error(state, "--%s is %s or %s, not '%s'", option, first, second, text);
    return is_second;
}

/* Of a file that gnuplot and a shell will be told. */
static const char *parse_file(const char *name, struct argp_state *state)
{
    if (strpbrk(name, " \t'\"\\$`;&|<>()\n"))
        argp_error(state, "'%s': take a name without blanks, quotes and the like", name);
    return name;
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
    char why[COLLX_WHY_MAX];

    switch (key) {
    case 'k':
        parse_kinds(argument, state);
        return 0;
    case 's':
        if (collx_range_parse(COLLX_SIZE, argument, 1, &options.sizes, why, sizeof why))
            argp_error(state, "%s", why);
        if (options.sizes.last > 1 << 30)
            argp_error(state, "sizes end at 1GiB; say where, as in 1..16MiB");
        return 0;
    case 'x':
        if (collx_value_parse(COLLX_NUMBER, argument, 2, 1024, &options.step, why, sizeof why))
            argp_error(state, "%s", why);
        return 0;
    case 't':
        options.manner.seconds = parse_positive(argument, "a number of seconds", state);
        return 0;
    case 'b':
        options.manner.batch_us = parse_positive(argument, "a number of microseconds", state);
        return 0;
    case 'o':
        options.overhead = true;
        return 0;
    case KEY_CALLS:
        options.manner.row = parse_choice(argument, "calls", "alone", "row", state);
        return 0;
    case KEY_CSV:
        options.csv = parse_file(argument, state);
        return 0;
    case KEY_DATA:
        options.manner.kept = parse_choice(argument, "data", "new", "kept", state);
        return 0;
    case KEY_LIFE:
        parse_lives(argument, state);
        return 0;
    case KEY_ROOT:
        options.manner.one_root = parse_choice(argument, "root", "turn", "first", state);
        return 0;
    case KEY_SVG:
        options.svg = parse_file(argument, state);
        return 0;
    case KEY_OF:
        elements_list(why, sizeof why);
        if (!elements_exist(argument))
            argp_error(state, "--of is one of %s, not '%s'", why, argument);
        options.manner.of = argument;
        return 0;
    case KEY_PEERS:
#ifndef OPEN_MPI
        argp_error(state, "--peers are components of Open MPI, and this is not for it");
#endif
        options.peers = argument;
        return 0;
    case ARGP_KEY_ARG:
        argp_error(state, "there are no arguments such as '%s'", argument);
        return 0;
    case ARGP_KEY_END:
        if (options.lives && options.overhead)
            argp_error(state, "--life and --overhead are two things to measure: ask for one");
        if (options.lives && options.csv)
            argp_error(state, "--life prints a table, and writes no files");
        if (options.svg && !options.csv)
            argp_error(state, "the plot is made from the CSV file: give --csv=FILE as well");
        if (options.svg && !options.kind[COLLX_BCAST] && !options.kind[COLLX_ALLREDUCE])
            argp_error(state, "the plot is latency by size: measure bcast or allreduce for it");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option known[] = {
    {"collectives", 'k', "LIST", 0, "which of barrier,bcast,allreduce (all)", 0},
    {"sizes", 's', "RANGE", 0, "of messages (1..16MiB)", 0},
    {"step", 'x', "N", 0, "each size is N times the one before (2)", 0},
    {"time", 't', "SECONDS", 0, "how long to measure, about (60)", 0},
    {"batch", 'b', "US", 0, "microseconds that a route has in a round, about (300)", 0},
    {"peers", KEY_PEERS, "LIST", 0,
     "components of Open MPI to compare with besides its own choice, such as sm,adapt (sm). One "
     "that does not take a communicator of one node leaves Open MPI's choice, and so makes no "
     "difference",
     0},
    {"data", KEY_DATA, "new|kept", 0,
     "whether senders write what they send before each call, as a program does that computes it, "
     "or "
     "send the same again, which may still be in the receivers' caches (new)",
     0},
    {"root", KEY_ROOT, "turn|first", 0,
     "whether each rank in turn is the root of a Bcast, or rank 0 of all, as in most programs: "
     "they gain less (turn)",
     0},
    {"calls", KEY_CALLS, "alone|row", 0,
     "whether all ranks start each call together, and it is over before the next one, or calls are "
     "made in a row, as most benchmarks do: ranks that need not wait for others run ahead (alone)",
     0},
    {"of", KEY_OF, "WHAT", 0,
     "what messages are made of: numbers, added up; long-double and complex, likewise; maxloc, of "
     "MPI_DOUBLE_INT; own, which are doubles, added up by an operation of the program's own; "
     "strided, which are every other double in memory, likewise; or fresh, the same of a datatype "
     "that is made anew for each call, within its time (numbers)",
     0},
    {"life", KEY_LIFE, "LIST", 0,
     "measure instead communicators that are made, make so many calls and are freed, such as "
     "1,20,5000: collx and the MPI library's own choice, with what collx takes to get to know each",
     0},
    {"csv", KEY_CSV, "FILE", 0, "write the figures there, too", 0},
    {"svg", KEY_SVG, "FILE", 0, "and a plot there; needs gnuplot", 0},
    {"overhead", 'o', NULL, 0,
     "measure instead what collx adds to a call, in nanoseconds, in a job of one rank. With a "
     "policy that routes everything to pmpi this is its whole price",
     0},
    {0}};

static const struct argp argp = {
    known,
    parse,
    NULL,
    "Measure collectives through collx and through the MPI library itself, in alternation.\v"
    "Run it as an MPI job under collx:\n"
    "  LD_PRELOAD=libcollx.so mpirun -n 2 collx-bench-openmpi\n"
    "The route \"collx\" is what the policy gives: that of COLLX_POLICY, or the built-in one. The "
    "other routes are named after collx's algorithms. All ranks must be on one node.",
    NULL,
    NULL,
    NULL};

/* Several short ones may be as long as the shortest that there is. */
static void add_point(struct point *points, int *count, enum collx_kind kind, size_t bytes)
{
    const size_t round = elements_round(options.manner.of, bytes);
    const struct point *last = *count ? &points[*count - 1] : NULL;

    if (!last || last->kind != kind || last->bytes != round)
        points[(*count)++] = (struct point){.kind = kind, .bytes = round};
}

static int make_points(struct point *points)
{
    int count = 0;

    for (unsigned kind = 0; kind < COLLX_ROUTED; kind++) {
        if (!options.kind[kind])
            continue;
        if (kind == COLLX_BARRIER) {
            points[count++] = (struct point){.kind = COLLX_BARRIER};
            continue;
        }
        for (int64_t bytes = options.sizes.first;
             bytes <= options.sizes.last && count < POINTS_MOST; bytes *= options.step)
            add_point(points, &count, (enum collx_kind)kind, (size_t)bytes);
    }
    return count;
}

static void print_title(void)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;

    MPI_Get_library_version(version, &length);
    version[strcspn(version, ",\n")] = '\0';
    for (char *c = version; (c = strchr(c, '\t'));)
        *c = ' ';
    const bool numbers = !strcmp(options.manner.of, "numbers");
    printf("collx-bench " COLLX_RELEASE ": %s, %d ranks on %d CPUs%s%s%s%s%s\n", version,
           machine.size, machine.cpus, numbers ? "" : ", --of=", numbers ? "" : options.manner.of,
           options.manner.kept ? ", --data=kept" : "",
           options.manner.one_root ? ", --root=first" : "",
           options.manner.row ? ", --calls=row" : "");
    for (int r = 0; r < route_count; r++) {
        bool able = routes[r].own || !strcmp(routes[r].name, "collx");
        for (unsigned kind = 0; kind < COLLX_ROUTED; kind++)
            able = able || strcmp(route_runs(&routes[r], (enum collx_kind)kind, 1), "pmpi");
        if (!able)
            printf("%s cannot run here; COLLX_VERBOSE=1 tells why\n", routes[r].name);
    }
}

/* What was measured has been printed by now, so what goes wrong does not end the job. */
static bool write_files(const struct point *points, int count)
{
    FILE *csv = fopen(options.csv, "we");
    bool good = csv != NULL;

    if (good) {
        print_csv(csv, points, count);
        good = !ferror(csv);
        good = !fclose(csv) && good;
    }
    if (!good) {
        fprintf(stderr, "collx-bench: cannot write %s: %s\n", options.csv, strerror(errno));
        return false;
    }
    if (options.svg && !print_svg(options.svg, options.csv)) {
        fprintf(stderr, "collx-bench: no plot: is gnuplot installed, and can %s be written?\n",
                options.svg);
        return false;
    }
    return true;
}

/* All ranks make the same calls, so they have to be asked for the same. */
static void compare_arguments(int argc, char **argv)
{
    uint64_t own_hash = COLLX_HASH_START, first;

    for (int i = 1; i < argc; i++)
        own_hash = collx_hash(own_hash, argv[i], strlen(argv[i]) + 1);
    first = own_hash;
    own.Bcast(&first, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    if (first != own_hash)
        fail("rank %d has other arguments than rank 0; give all ranks the same", machine.rank);
}

int main(int argc, char **argv)
{
    static struct point points[POINTS_MOST];
    bool good = true;

    argp_parse(&argp, argc, argv, 0, NULL, NULL);
    /* What the user's policy does is asked for, when it would: not what one of ours does. */
    if (!options.overhead && !options.lives)
        routes_prepare();
    MPI_Init(NULL, NULL);
    routes_find_own();
    machine_init();
    compare_arguments(argc, argv);
    elements_init();
    int count = make_points(points);
    if (options.overhead) {
        if (machine.size > 1)
            fail("--overhead is for a job of one rank: mpirun -n 1");
        if (!routes_has_collx())
            fail("--overhead is what collx adds, and collx is not there; set "
                 "LD_PRELOAD=libcollx.so, and not COLLX_ENABLE=off");
        measure_overhead(points, count, &options.manner);
    } else if (options.lives) {
        if (!routes_has_collx())
            fail("--life compares collx with the MPI library, and collx is not there; set "
                 "LD_PRELOAD=libcollx.so, and not COLLX_ENABLE=off");
        if (machine.rank == 0)
            print_title();
        measure_lives(points, count, options.life, options.lives, &options.manner);
    } else {
        routes_init(options.peers);
        measure(points, count, &options.manner);
        if (machine.rank == 0) {
            print_title();
            print_text(stdout, points, count);
            if (options.csv)
                good = write_files(points, count);
        }
    }
    if (fflush(stdout) || ferror(stdout)) {
        fprintf(stderr, "collx-bench: cannot write what was measured: %s\n", strerror(errno));
        good = false;
    }
    elements_finish();
    routes_finish();
    MPI_Finalize();
    for (int i = 0; i < count; i++)
        free(points[i].round);
    return good ? 0 : 1;
}
