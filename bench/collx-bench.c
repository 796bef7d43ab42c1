/* collx-bench: a collective through collx and through the MPI library itself, in alternation.
 *
 * Run it under collx (LD_PRELOAD=libcollx.so, or as installed).  Both ways are measured in the same
 * job, block by block in turn, so that a machine that changes its speed changes it for both; what
 * is reported is the median over the blocks, and the median of the blocks' ratios.  A block is a
 * number of calls one after the other; a Bcast has another root each time, so that no call can
 * start before the last has arrived.
 */
#include <argp.h>
#include <dlfcn.h>
#include <math.h>
#include <mpi.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS_MOST = 1001 };

static struct {
    const char *kinds;
    size_t first, last;
    int blocks;
    double block_us;
    bool csv, overhead;
} options = {
    .kinds = "barrier,bcast,allreduce", .first = 8, .last = 1 << 20, .blocks = 41, .block_us = 500};

static int rank, size;

/* The MPI library's own functions, from its own handle: PMPI_X by name is collx's. */
static struct {
    int (*Barrier)(MPI_Comm);
    int (*Bcast)(void *, int, MPI_Datatype, int, MPI_Comm);
    int (*Allreduce)(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);
} own;

static bool find_own(void)
{
    static const char *const libraries[] = {"libmpi.so.40", "libmpich.so.12", "libmpi.so.12"};
    void *library = NULL;

    for (size_t i = 0; !library && i < sizeof libraries / sizeof *libraries; i++)
        library = dlopen(libraries[i], RTLD_LAZY | RTLD_NOLOAD);
    if (!library)
        return false;
    own.Barrier = (__typeof__(own.Barrier))dlsym(library, "PMPI_Barrier");
    own.Bcast = (__typeof__(own.Bcast))dlsym(library, "PMPI_Bcast");
    own.Allreduce = (__typeof__(own.Allreduce))dlsym(library, "PMPI_Allreduce");
    return own.Barrier && own.Bcast && own.Allreduce;
}

struct measured {
    MPI_Comm comm;
    const char *kind;
    size_t bytes;
    double *send, *receive;
};

/* `calls` calls; seconds for each. */
static double block(const struct measured *what, bool through_collx, int calls)
{
    int ranks, count = (int)(what->bytes / sizeof(double));
    double begin;

    MPI_Comm_size(what->comm, &ranks);
    own.Barrier(what->comm);
    begin = MPI_Wtime();
    if (!strcmp(what->kind, "barrier")) {
        for (int i = 0; i < calls; i++)
            through_collx ? MPI_Barrier(what->comm) : own.Barrier(what->comm);
    } else if (!strcmp(what->kind, "bcast")) {
        for (int i = 0; i < calls; i++)
            through_collx
                ? MPI_Bcast(what->receive, (int)what->bytes, MPI_BYTE, i % ranks, what->comm)
                : own.Bcast(what->receive, (int)what->bytes, MPI_BYTE, i % ranks, what->comm);
    } else {
        for (int i = 0; i < calls; i++)
            through_collx
                ? MPI_Allreduce(what->send, what->receive, count, MPI_DOUBLE, MPI_SUM, what->comm)
                : own.Allreduce(what->send, what->receive, count, MPI_DOUBLE, MPI_SUM, what->comm);
    }
    return (MPI_Wtime() - begin) / calls;
}

static int ascending(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;

    return a < b ? -1 : a > b;
}

static double quantile(double *values, int n, double q)
{
    qsort(values, (size_t)n, sizeof *values, ascending);
    return values[(int)(q * (n - 1) + 0.5)];
}

/* One way between two CPUs' caches, in seconds: the state of the machine, and what no barrier can
 * beat.  0 where there is only one rank, or the two do not share memory. */
static double probe(void)
{
    static MPI_Win window = MPI_WIN_NULL;
    static _Atomic int *line[2];
    enum { TRIPS = 2000 };
    double begin;

    if (size < 2)
        return 0;
    if (window == MPI_WIN_NULL) {
        MPI_Comm node;
        MPI_Aint bytes;
        void *mine;
        int unit, here;

        MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
        MPI_Comm_size(node, &here);
        if (here < size)
            return 0;
        MPI_Win_allocate_shared(4096, 1, MPI_INFO_NULL, node, &mine, &window);
        memset(mine, 0, 4096);
        for (int i = 0; i < 2; i++)
            MPI_Win_shared_query(window, i, &bytes, &unit, &line[i]);
    }
    static int trip;
    own.Barrier(MPI_COMM_WORLD);
    begin = MPI_Wtime();
    for (int i = 0; rank < 2 && i < TRIPS; i++) {
        int now = ++trip;
        if (rank == 0)
            atomic_store_explicit(line[0], now, memory_order_release);
        while (atomic_load_explicit(line[!rank], memory_order_acquire) < now)
            ;
        if (rank == 1)
            atomic_store_explicit(line[1], now, memory_order_release);
    }
    return (MPI_Wtime() - begin) / TRIPS / 2;
}

static void measure(MPI_Comm comm, const char *kind, size_t bytes)
{
    static double collx[BLOCKS_MOST], mpi[BLOCKS_MOST], ratio[BLOCKS_MOST], gap[BLOCKS_MOST];
    struct measured what = {comm, kind, bytes, NULL, NULL};

    what.send = calloc(1, bytes + 64);
    what.receive = calloc(1, bytes + 64);
    block(&what, true, 20);
    double estimate = block(&what, false, 20);
    int calls = (int)(options.block_us / 1e6 / (estimate > 1e-9 ? estimate : 1e-9));
    calls = calls < 4 ? 4 : calls > 100000 ? 100000 : calls;
    MPI_Bcast(&calls, 1, MPI_INT, 0, MPI_COMM_WORLD);

    double before = options.overhead ? 0 : probe();
    for (int i = 0; i < options.blocks; i++) {
        /* Who goes first changes, lest one always finds the caches as the other left them. */
        bool first = i % 2;
        double a = block(&what, first, calls), b = block(&what, !first, calls);
        collx[i] = first ? a : b;
        mpi[i] = first ? b : a;
        ratio[i] = mpi[i] / collx[i];
        gap[i] = collx[i] - mpi[i];
    }
    double after = options.overhead ? 0 : probe();
    if (rank == 0) {
        int n = options.blocks;
        double us_mpi = quantile(mpi, n, .5) * 1e6, us_collx = quantile(collx, n, .5) * 1e6;
        if (options.overhead)
            printf("%-10s %9zu %11.1f %11.1f %9.1f ns\n", kind, bytes, us_mpi * 1e3, us_collx * 1e3,
                   quantile(gap, n, .5) * 1e9);
        else
            printf(options.csv ? "%s,%zu,%.4f,%.4f,%.3f,%.3f,%.3f,%.1f,%.1f\n"
                               : "%-10s %9zu %11.3f %11.3f %7.2f  (%.2f to %.2f) %7.0f %5.0f\n",
                   kind, bytes, us_mpi, us_collx, quantile(ratio, n, .5), quantile(ratio, n, .25),
                   quantile(ratio, n, .75), before * 1e9, after * 1e9);
        fflush(stdout);
    }
    free(what.send);
    free(what.receive);
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
    char *end = argument;

    switch (key) {
    case 'k':
        options.kinds = argument;
        return 0;
    case 's':
        options.first = strtoul(argument, &end, 10);
        options.last = *end == ':' ? strtoul(end + 1, &end, 10) : options.first;
        break;
    case 'b':
        options.blocks = (int)strtol(argument, &end, 10);
        if (options.blocks < 1 || options.blocks > BLOCKS_MOST)
            argp_error(state, "--blocks takes 1 to %d", BLOCKS_MOST);
        break;
    case 't':
        options.block_us = strtod(argument, &end);
        break;
    case 'c':
        options.csv = true;
        return 0;
    case 'o':
        options.overhead = true;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    if (*end)
        argp_error(state, "'%s' is no number", argument);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct argp_option known[] = {
        {"collectives", 'k', "LIST", 0, "which: barrier,bcast,allreduce (all)", 0},
        {"sizes", 's', "FIRST:LAST", 0, "bytes, each four times the last (8:1048576)", 0},
        {"blocks", 'b', "N", 0, "blocks of each way (41)", 0},
        {"time", 't', "US", 0, "microseconds that a block lasts, about (500)", 0},
        {"csv", 'c', NULL, 0, "comma-separated values", 0},
        {"overhead", 'o', NULL, 0,
         "on a communicator of one rank, in nanoseconds: what collx adds to a call. With a policy "
         "that routes everything to pmpi this is its whole price",
         0},
        {0}};
    static const struct argp argp = {
        known,
        parse,
        NULL,
        "Measure collectives through collx and through the MPI library itself, in alternation. "
        "Run it as an MPI job with LD_PRELOAD=libcollx.so.",
        NULL,
        NULL,
        NULL};

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    argp_parse(&argp, argc, argv, 0, NULL, NULL);
    if (!find_own()) {
        fprintf(stderr, "collx-bench: no MPI library that it knows is loaded\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    Dl_info door = {0};
    dladdr(dlsym(RTLD_DEFAULT, "MPI_Barrier"), &door);
    if (rank == 0 && (!door.dli_fname || !strstr(door.dli_fname, "libcollx")))
        fprintf(stderr, "collx-bench: not running under collx, so both ways are the MPI library's; "
                        "set LD_PRELOAD=libcollx.so\n");

    MPI_Comm comm = options.overhead ? MPI_COMM_SELF : MPI_COMM_WORLD;
    for (int i = 0; i < 10; i++)
        MPI_Barrier(comm);
    if (rank == 0 && options.overhead)
        printf("collective     bytes      MPI ns    collx ns      adds\n");
    else if (rank == 0)
        printf(options.csv ? "collective,bytes,mpi_us,collx_us,ratio,ratio_25,ratio_75,"
                             "flag_ns_before,flag_ns_after\n"
                           : "collective     bytes      MPI us    collx us   ratio (quartiles)    "
                             "flag ns before, after\n");
    char *kinds = strdup(options.kinds);
    for (char *kind = strtok(kinds, ","); kind; kind = strtok(NULL, ",")) {
        if (!strcmp(kind, "barrier")) {
            measure(comm, kind, 0);
            continue;
        }
        for (size_t bytes = options.first; bytes <= options.last; bytes *= 4)
            measure(comm, kind, bytes);
    }
    free(kinds);
    MPI_Finalize();
    return 0;
}
