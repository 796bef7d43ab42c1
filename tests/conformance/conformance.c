/* Conformance tests: does a collective do what MPI says, whichever way it goes?
 *
 * Run by run.py under LD_PRELOAD=libcollx.so with a policy that forces one algorithm:
 *     conformance [--quick] [--in-part] [--ranks N] [--library PART] [--limit SECONDS] AREA…
 * prints a line "area NAME cases N failures N seconds N" for each area, and failures to stderr.
 */
#include "conformance.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct area {
    const char *name;
    void (*test)(void);
    bool threads;
} areas[] = {
    {"barrier", cf_test_barrier, false},     {"bcast", cf_test_bcast, false},
    {"allreduce", cf_test_allreduce, false}, {"allreduce-user", cf_test_allreduce_user, false},
    {"floats", cf_test_floats, false},       {"halves", cf_test_halves, false},
    {"progress", cf_test_progress, false},   {"mixes", cf_test_mixes, false},
    {"errors", cf_test_errors, false},       {"intercomm", cf_test_intercomm, false},
    {"routes", cf_test_routes, false},       {"threads", cf_test_threads, true},
};

static const struct area *find(const char *name)
{
    for (size_t i = 0; i < sizeof areas / sizeof areas[0]; i++)
        if (strcmp(areas[i].name, name) == 0)
            return &areas[i];
    fprintf(stderr, "conformance: there is no area '%s'\n", name);
    exit(2);
}

/* The test would pass, and show nothing, if calls did not go where they are meant to go.  The
 * program may have a function of its own, which jumps on. */
static void check_door(const char *library)
{
    Dl_info info;

    if (!dladdr(dlsym(RTLD_NEXT, "MPI_Barrier"), &info) || !strstr(info.dli_fname, library)) {
        fprintf(stderr, "conformance: MPI_Barrier is not in %s but in %s\n", library,
                info.dli_fname);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
}

/* So it would if every process was a job of its own, as under the launcher of another MPI library.
 */
static void check_ranks(int ranks)
{
    int size;

    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size == ranks)
        return;
    fprintf(stderr, "conformance: these are %d ranks, not %d\n", size, ranks);
    MPI_Abort(MPI_COMM_WORLD, 2);
}

int main(int argc, char **argv)
{
    int failures = 0, limit = 60, ranks = 0, wanted = MPI_THREAD_SINGLE, provided, i = 1;
    const char *library = "";

    for (; i < argc && argv[i][0] == '-'; i++)
        if (strcmp(argv[i], "--quick") == 0) {
            cf_quick = true;
        } else if (strcmp(argv[i], "--in-part") == 0) {
            cf_in_part = true;
        } else if (strcmp(argv[i], "--library") == 0 && i + 1 < argc) {
            library = argv[++i];
            cf_routed = true;
        } else if (strcmp(argv[i], "--limit") == 0 && i + 1 < argc) {
            limit = atoi(argv[++i]);
        } else if (strcmp(argv[i], "--ranks") == 0 && i + 1 < argc) {
            ranks = atoi(argv[++i]);
        } else {
            fprintf(stderr, "conformance: unknown argument '%s'\n", argv[i]);
            return 2;
        }
    for (int a = i; a < argc; a++)
        if (find(argv[a])->threads)
            wanted = MPI_THREAD_MULTIPLE;

    MPI_Init_thread(&argc, &argv, wanted, &provided);
    if (provided < wanted) {
        fprintf(stderr, "conformance: this MPI does not support MPI_THREAD_MULTIPLE\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    check_door(library);
    if (ranks)
        check_ranks(ranks);
    cf_harness_init();
    cf_types_init();
    cf_values_init();
    for (; i < argc; i++) {
        const struct area *area = find(argv[i]);

        cf_area_begin(area->name, limit);
        area->test();
        failures += cf_area_end();
    }
    cf_types_finish();
    cf_harness_finish();
    MPI_Finalize();
    return failures != 0;
}
