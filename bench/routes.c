/* The routes: a communicator each, told apart by name in a policy made for this job.
 *
 * What really runs is not taken from that policy but from what collx says about each communicator
 * once it has set it up (COLLX_VERBOSE=1).
 */
#include "bench/bench.h"

#include "base/algorithm.h"
#include "base/mpi_libraries.h"
#include "base/options.h"
#include "base/parse.h"
#include "policies/policy.h"

#include <dlfcn.h>
#include <errno.h>
#include <libfyaml.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

extern const char bench_default_policy[]; /* made from policies/default.yaml */

enum { RUNS_MOST = 64 };

/* A line of the table that collx prints. */
struct runs {
    enum collx_kind kind;
    struct collx_range bytes;
    char what[NAME_MOST];
};

struct route routes[ROUTES_MOST];
int route_count;
struct own own;
const struct own through = {MPI_Barrier, MPI_Bcast, MPI_Allreduce, MPI_Comm_dup, MPI_Comm_free};
static struct runs runs[ROUTES_MOST][RUNS_MOST];
static int runs_count[ROUTES_MOST];
static bool verbose; /* the user wants to see what collx says */

static const char prefix[] = "collx-bench ";

/* The names of all algorithms, each once; NULL at the end. */
static const char *algorithm_name(int number)
{
    for (int i = 0; collx_algorithms[i]; i++) {
        bool seen = false;
        for (int before = 0; before < i; before++)
            seen = seen || !strcmp(collx_algorithms[before]->name, collx_algorithms[i]->name);
        if (!seen && number-- == 0)
            return collx_algorithms[i]->name;
    }
    return NULL;
}

/* The policy that holds for route "collx", with a rule before it for each other communicator. */
static char *make_policy(const char *path)
{
    struct fy_document *policy =
        path ? fy_document_build_from_file(NULL, path)
             : fy_document_build_from_string(NULL, bench_default_policy, FY_NT);
    struct fy_node *rules =
        policy ? fy_node_by_path(fy_document_root(policy), "/rules", FY_NT, FYNWF_DONT_FOLLOW)
               : NULL;
    const char *name;
    char *text = NULL;
    int ours = 0;

    if (!fy_node_is_sequence(rules))
        goto out;
    for (; (name = algorithm_name(ours)); ours++) {
        struct fy_node *rule = fy_node_buildf(
            policy, "{ match: { comm: \"%s%s\" }, use: [%s, pmpi] }", prefix, name, name);
        if (!rule || fy_node_sequence_prepend(rules, rule))
            goto out;
    }
    if (fy_node_sequence_item_count(rules) > COLLX_POLICY_RULES) {
        fprintf(stderr,
                "collx-bench: %s has %d rules, and %d at most leave room for those of the "
                "benchmark; take out what does not match MPI_COMM_WORLD\n",
                path, fy_node_sequence_item_count(rules) - ours, COLLX_POLICY_RULES - ours);
        exit(1);
    }
    text = fy_emit_document_to_string(policy, FYECF_DEFAULT);
out:
    fy_document_destroy(policy);
    return text;
}

void routes_prepare(void)
{
    const char *path = getenv("COLLX_POLICY");
    char name[64];

    path = path && *path ? path : NULL;
    char *text = make_policy(path);
    if (!text && path) {
        fprintf(stderr, "collx-bench: %s is no policy; ask: collx policy check %s\n", path, path);
        exit(1);
    }
    /* A file without a name: nothing stays behind, however the job ends. */
    int fd = memfd_create("collx-bench-policy", MFD_CLOEXEC);
    if (!text || fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text)) {
        fprintf(stderr, "collx-bench: cannot write a policy for this job: %s\n", strerror(errno));
        exit(1);
    }
    free(text);
    snprintf(name, sizeof name, COLLX_POLICY_NAMELESS "%d", fd);
    setenv("COLLX_POLICY", name, 1);
    setenv("COLLX_AT_ONCE", "on", 1);
    verbose = getenv("COLLX_VERBOSE") && strcmp(getenv("COLLX_VERBOSE"), "0");
    if (!verbose)
        setenv("COLLX_VERBOSE", "1", 1);
}

void routes_find_own(void)
{
    void *library = NULL;

    for (unsigned i = 0; !library && i < COLLX_MPI_LIBRARIES; i++)
        library = dlopen(collx_mpi_libraries[i].library, RTLD_LAZY | RTLD_NOLOAD);
    if (library) {
#define FIND(Name) own.Name = (__typeof__(own.Name))dlsym(library, "PMPI_" #Name)
        FIND(Barrier);
        FIND(Bcast);
        FIND(Allreduce);
        FIND(Comm_dup);
        FIND(Comm_free);
#undef FIND
    }
    if (!own.Barrier || !own.Bcast || !own.Allreduce || !own.Comm_dup || !own.Comm_free)
        fail("no MPI library that it knows is loaded");
}

bool routes_has_collx(void)
{
    Dl_info door = {0};

    /* The program, which takes its address, may have one itself that jumps on. */
    dladdr(dlsym(RTLD_NEXT, "MPI_Barrier"), &door);
    collx_options_load(environ, NULL); /* collx itself says what is wrong there */
    return door.dli_fname && strstr(door.dli_fname, "libcollx") &&
           collx_option_number(COLLX_OPTION_ENABLE);
}

/* The name of its communicator, until the next call.  For route "collx" it is that of the one which
 * most programs use, so that what the user's policy says of that holds. */
static const char *label_of(const struct route *route)
{
    static char label[NAME_MOST + sizeof prefix];

    if (!strcmp(route->name, "collx"))
        return "MPI_COMM_WORLD";
    snprintf(label, sizeof label, "%s%.*s", prefix, NAME_MOST - 1, route->name);
    return label;
}

static void add(const char *name, const char *what, bool is_own, MPI_Info info)
{
    struct route *route = &routes[route_count];

    if (route_count == ROUTES_MOST)
        fail("more than %d routes; name fewer peers", ROUTES_MOST);
    snprintf(route->name, sizeof route->name, "%s%s", name, what);
    route->own = is_own;
    MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &route->comm);
    MPI_Comm_set_name(route->comm, label_of(route));
    route_count++;
}

/* "collx:   8KiB..64KiB          sum max      line 3     nx(n=6)" */
static void note_line(int route, enum collx_kind kind, char *line)
{
    struct runs *run = &runs[route][runs_count[route]];
    char why[COLLX_WHY_MAX], bytes[64], digits[16];
    char *rest = line + strlen("collx:   "), *rule = strstr(rest, " line "), *what = NULL;
    int used = 0;

    if (sscanf(rest, "%63s%n", bytes, &used) != 1 || runs_count[route] == RUNS_MOST)
        return;
    char *ops = rest + used;
    if (rule && sscanf(rule, " line %15[0-9]%n", digits, &used) == 1)
        what = rule + used;
    else if ((rule = strstr(rest, " no rule ")))
        what = rule + strlen(" no rule ");
    if (!what)
        return; /* the heading, or the reason why something does not run */
    what += strspn(what, " ");
    *rule = '\0';
    /* What is measured is a sum. */
    bool all_but = strstr(ops, "not ") != NULL;
    if (kind == COLLX_ALLREDUCE && !strstr(ops, "any") && !strstr(ops, "sum") != all_but)
        return;
    run->kind = kind;
    run->bytes = (struct collx_range){0, INT64_MAX};
    if (strcmp(bytes, "-") && strcmp(bytes, "any") &&
        collx_range_parse(COLLX_SIZE, bytes, 0, &run->bytes, why, sizeof why))
        return;
    snprintf(run->what, sizeof run->what, "%s", what);
    runs_count[route]++;
}

/* "collx: shm of bcast on collx-bench shm: everybody reads from the root" */
static bool is_description(const char *line)
{
    char word[16];
    bool found = false;

    if (sscanf(line, "collx: %*s of %15s on", word) == 1)
        for (unsigned kind = 0; kind < COLLX_ROUTED; kind++)
            found = found || !strcmp(word, collx_kind_name(kind));
    return found;
}

/* What collx said while it set a communicator up: tables are understood, warnings passed on. */
static void note(int route, char *said)
{
    enum collx_kind kind = COLLX_KINDS;
    char *next, word[16];

    for (char *line = said; *line; line = next) {
        next = line + strcspn(line, "\n");
        if (*next)
            *next++ = '\0';
        if (verbose)
            fprintf(stderr, "%s\n", line);
        if (!strncmp(line, "collx:   ", 9) && kind < COLLX_ROUTED) {
            note_line(route, kind, line);
            continue;
        }
        kind = COLLX_KINDS;
        if (sscanf(line, "collx: %15s on", word) == 1 && strstr(line, label_of(&routes[route])))
            for (unsigned k = 0; k < COLLX_ROUTED; k++)
                if (!strcmp(word, collx_kind_name(k)))
                    kind = (enum collx_kind)k;
        bool told = !strncmp(line, "collx: waiting on ", 18) ||
                    !strncmp(line, "collx: memory of ", 17) || is_description(line);
        if (kind == COLLX_KINDS && !verbose && *line && !told)
            fprintf(stderr, "%s\n", line);
    }
}

/* Let collx set a communicator up, and listen to what it says. */
static void listen_to(int route)
{
    static char said[1 << 16];
    int keep = -1, file = -1;

    if (machine.rank == 0) {
        file = memfd_create("collx-bench-said", MFD_CLOEXEC);
        keep = dup(STDERR_FILENO);
        if (file < 0 || keep < 0)
            fail("cannot listen to what collx says: %s", strerror(errno));
        fflush(stderr);
        dup2(file, STDERR_FILENO);
    }
    MPI_Barrier(routes[route].comm);
    if (machine.rank == 0) {
        dup2(keep, STDERR_FILENO);
        close(keep);
        ssize_t length = pread(file, said, sizeof said - 1, 0);
        said[length > 0 ? length : 0] = '\0';
        close(file);
        note(route, said);
    }
    /* All measure what rank 0 says, and it alone was told. */
    own.Bcast(&runs_count[route], 1, MPI_INT, 0, MPI_COMM_WORLD);
    own.Bcast(runs[route], (int)sizeof runs[route], MPI_BYTE, 0, MPI_COMM_WORLD);
}

#ifdef OPEN_MPI
/* It takes any word for the component to prefer.  Each that it has has a priority. */
static bool is_component(const char *peer)
{
    char name[NAME_MOST + 32];
    int level, index;

    snprintf(name, sizeof name, "coll_%s_priority", peer);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &level);
    bool found = MPI_T_cvar_get_index(name, &index) == MPI_SUCCESS;
    MPI_T_finalize();
    return found;
}
#endif

static void add_peers(const char *peers)
{
    char *list = strdup(peers ? peers : "sm"), *keep = NULL;
    MPI_Info info;

#ifdef OPEN_MPI
    MPI_Info_create(&info);
    for (char *peer = strtok_r(list, ",", &keep); peer; peer = strtok_r(NULL, ",", &keep)) {
        if (!is_component(peer)) {
            if (peers)
                fail("Open MPI has no component '%s' for collectives; ompi_info lists those it has",
                     peer);
            continue;
        }
        /* MPI does not tell what has been chosen then: one that wants more than a node, as han
         * does, leaves the choice that there was. */
        MPI_Info_set(info, "ompi_comm_coll_preference", peer);
        add("mpi:", peer, true, info);
    }
    MPI_Info_free(&info);
#else
    (void)info, (void)keep; /* MPICH does not choose for a communicator */
#endif
    free(list);
}

void routes_init(const char *peers)
{
    const char *name;

    add("mpi", "", true, MPI_INFO_NULL);
    add_peers(peers);
    if (!routes_has_collx()) {
        if (machine.rank == 0)
            fprintf(stderr, "collx-bench: not running under collx, so there is the MPI library "
                            "alone; set LD_PRELOAD=libcollx.so, and not COLLX_ENABLE=off\n");
        return;
    }
    add("collx", "", false, MPI_INFO_NULL);
    for (int i = 0; (name = algorithm_name(i)); i++)
        add(name, "", false, MPI_INFO_NULL);
    for (int i = 0; i < route_count; i++) {
        if (routes[i].own)
            continue;
        listen_to(i);
        if (runs_count[i] == 0)
            fail("collx has not said what runs on '%s'; COLLX_VERBOSE=1 shows what it says",
                 label_of(&routes[i]));
    }
}

void routes_finish(void)
{
    while (route_count)
        MPI_Comm_free(&routes[--route_count].comm);
}

const char *route_runs(const struct route *route, enum collx_kind kind, size_t bytes)
{
    const struct runs *run = runs[route - routes];

    if (route->own)
        return route->name;
    for (int i = 0; i < runs_count[route - routes]; i++)
        if (run[i].kind == kind && (int64_t)bytes >= run[i].bytes.first &&
            (int64_t)bytes <= run[i].bytes.last)
            return run[i].what;
    return "pmpi";
}

bool route_counts(int route, enum collx_kind kind, size_t bytes)
{
    const char *what = route_runs(&routes[route], kind, bytes);

    /* Route "collx" is what a user gets, and counts even where that is the MPI library. */
    if (routes[route].own || !strcmp(routes[route].name, "collx"))
        return true;
    for (int before = 0; before < route; before++)
        if (!strcmp(route_runs(&routes[before], kind, bytes), what))
            return false;
    return strcmp(what, "pmpi") != 0;
}
