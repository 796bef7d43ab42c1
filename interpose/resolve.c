/* Finding the MPI that this process really uses, its adapter, and the tools around us.
 *
 * Nothing here runs before the first MPI call: a process without MPI that was given libcollx.so by
 * LD_PRELOAD (mpirun, bash, python) never notices it.  The first call of any entry does, in order:
 *
 *   1. find the MPI library among the loaded objects, also one loaded with RTLD_LOCAL;
 *   2. take every real function from that library's own handle, so that no call can come back here;
 *   3. load the adapter for that MPI from beside libcollx.so and let it put itself in the way;
 *   4. see for each MPI_X whether a tool was loaded behind us; if so MPI_X goes to the tool, whose
 *      PMPI_X comes back to be routed, and otherwise straight to where PMPI_X goes.
 *
 * What stands in for MPI in a program of one process, and has MPI_X alone, is left alone, whatever
 * scope it was loaded into.
 */
#include "base/door.h"
#include "base/folder.h"
#include "base/launcher.h"
#include "base/stderr.h"
#include "interpose/any_libc.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* entry.S jumps through these. */
extern void *collx_mpi_table[COLLX_ENTRIES], *collx_pmpi_table[COLLX_ENTRIES];

/* Where the entries are. */
extern const char collx_entries[], collx_entries_end[];

/* Called by entry.S. */
void collx_resolve(void);

static const char *const names[COLLX_ENTRIES] = {
#define ENTRY(Name) "PMPI_" #Name,
#include "base/entries.def"
#undef ENTRY
};

static collx_dlsym_fn *find;     /* NULL: there is no such function */
static void *mpi;                /* NULL: none was found */
static void *behind = RTLD_NEXT; /* where to look for what it has not */
static void *real[COLLX_ENTRIES];
static void *route[COLLX_ENTRIES];
static void *next[COLLX_ENTRIES]; /* MPI_X of what was loaded behind us */
static void *tool[COLLX_ENTRIES];
static char folder[4096];

static void warn(const char *format, ...)
{
    char text[1024];
    va_list args;

    if (!collx_launcher_first() || !pthread_sigmask)
        return;
    strcpy(text, "collx: "); /* as what it begins with, compilers take memcpy for it: any_libc.h */
    va_start(args, format);
    vsnprintf(text + strlen(text), sizeof text - strlen(text) - 1, format, args);
    va_end(args);
    strcat(text, "\n");
    collx_stderr_write(text, strlen(text));
}

/* What stands for an MPI function that this MPI library does not have, and its adapter does not do
 * without it.  A program linked against this MPI cannot call it; one that asks dlsym() for it, or
 * has a weak reference, gets an error instead of a crash. */
static int missing(void)
{
    static bool said;

    if (!__atomic_exchange_n(&said, true, __ATOMIC_RELAXED))
        warn("the program calls an MPI function that its MPI library does not have; "
             "the call returns an error. A newer MPI library may have it");
    return 16; /* MPI_ERR_OTHER or a neighbour of it: anything but MPI_SUCCESS */
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* Others have names such as libmpi_cray.so.12 and libmpi_gnu_91.so.12, by compiler, but so have
 * libmpi_cxx.so and whatever else comes with an MPI library: they are asked last. */
static bool is_usual(const char *name)
{
    const char *file = base_name(name);

    return !strncmp(file, "libmpi.so", 9) || !strncmp(file, "libmpich.so", 11);
}

static bool is_called_mpi(const char *name)
{
    return !strncmp(base_name(name), "libmpi", 6);
}

static bool is_library(const char *name)
{
    return *name; /* the program itself has none */
}

/* The function in `handle`, or in what that needs; NULL: it has none, or that is our own. */
static void *look_up(void *handle, const char *name)
{
    const char *found = find ? find(handle, name) : NULL;

    return found >= collx_entries && found < collx_entries_end ? NULL : (void *)found;
}

static bool is_mpi(void *handle)
{
    return look_up(handle, "PMPI_Get_library_version");
}

static bool has_any(void *handle)
{
    for (int i = 0; i < COLLX_ENTRIES; i++)
        if (look_up(handle, names[i] + 1))
            return true;
    return false;
}

/* The loaded object of that number among those that are called so. */
struct search {
    bool (*is_called_so)(const char *name);
    int number;
    char name[4096];
};

/* Only takes the name down: the loader holds a lock meanwhile, under which dlopen() could meet
 * another thread's dlopen() in the opposite order. */
static int note_name(struct dl_phdr_info *object, size_t size, void *context)
{
    struct search *search = context;

    (void)size;
    if (!search->is_called_so(object->dlpi_name) || search->number--)
        return 0;
    snprintf(search->name, sizeof search->name, "%s", object->dlpi_name);
    return 1;
}

/* The first loaded object that is called so and has what it takes. */
static void *find_loaded(bool (*is_called_so)(const char *name), bool (*has_it)(void *handle))
{
    struct search search = {.is_called_so = is_called_so};

    for (int i = 0; search.number = i, dl_iterate_phdr(note_name, &search); i++) {
        /* Already loaded: this only takes a handle of it, whatever scope it was loaded into. */
        void *handle = dlopen(search.name, RTLD_LAZY | RTLD_NOLOAD);
        if (handle && has_it(handle))
            return handle;
        if (handle)
            dlclose(handle);
    }
    return NULL;
}

/* For where there is no MPI library.  Extension modules of Python, and all that comes with them,
 * are loaded with RTLD_LOCAL, where RTLD_NEXT does not look. */
static void find_stand_in(void)
{
    void *found = has_any(RTLD_NEXT) ? NULL : find_loaded(is_library, has_any);

    if (found)
        behind = found;
}

/* Libraries of the ABI that MPI 5 standardizes come beside those of their family's own, under names
 * of their own, and say the same version.  To an adapter their handles are others: MPI_COMM_WORLD
 * is 0x101 in all of them. */
static bool has_standard_abi(void)
{
    int (*get_version)(int *, int *) = (int (*)(int *, int *))dlsym(mpi, "PMPI_Abi_get_version");
    int major = -1, minor = -1;

    return get_version && !get_version(&major, &minor) && major > 0;
}

/* "openmpi" or "mpich": which adapter knows this library.  All libraries of the MPICH ABI are one
 * to us.  NULL: none. */
static const char *adapter_for(char *version, size_t size)
{
    static const struct {
        const char *says, *adapter;
    } known[] = {
        {"Open MPI", "openmpi"},   {"MPICH", "mpich"},      {"MVAPICH", "mpich"},
        {"Intel(R) MPI", "mpich"}, {"CRAY MPICH", "mpich"},
    };
    int (*get_version)(char *, int *) =
        (int (*)(char *, int *))dlsym(mpi, "PMPI_Get_library_version");
    static char text[16384]; /* more than any MPI_MAX_LIBRARY_VERSION_STRING */
    int length = 0;

    get_version(text, &length);
    text[sizeof text - 1] = '\0';
    snprintf(version, size, "%.*s", (int)strcspn(text, ",\n"), text);
    for (char *tab; (tab = strchr(version, '\t'));)
        *tab = ' ';
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strstr(version, known[i].says))
            return known[i].adapter;
    return NULL;
}

/* Handles of Open MPI are addresses in a library, which an adapter has brought along, if the
 * process does not use it: a release of another binary interface has another file name, and since
 * release 6 they are in another library than the functions.  Asked of the two, since a program may
 * have copies of their data. */
static bool is_for_another(void *adapter)
{
    void *its = dlsym(adapter, "ompi_mpi_comm_world");

    return its && its != dlsym(mpi, "ompi_mpi_comm_world");
}

static void load_adapter(void)
{
    char version[256], path[sizeof folder + 64], why[512] = "";

    if (!dladdr1) {
        warn("the program uses another C library than glibc, which collx was built for; it runs "
             "without collx. Run it with collx in a container that has glibc");
        return;
    }
    collx_folder_of((void *)collx_resolve, folder, sizeof folder);
    /* Not where the program has rights that its user has not: it would be code of his choice. */
    const char *wanted = secure_getenv("COLLX_ADAPTER");
    const char *adapter = adapter_for(version, sizeof version);
    /* What to do about it, if it is at fault. */
    const char *named = wanted && *wanted ? "It is what COLLX_ADAPTER names: unset that" : NULL;

    if (named) {
        snprintf(path, sizeof path, "%s", wanted);
    } else if (has_standard_abi()) {
        warn("no adapter for the standard ABI of MPI 5, by which the program uses its MPI library "
             "(%s); it runs without collx. Build it with the library's own mpi.h",
             version);
        return;
    } else if (adapter) {
        snprintf(path, sizeof path, "%s/libcollx-%s.so", folder, adapter);
    } else {
        warn("no adapter for this MPI library (%s); the program runs without collx. "
             "'collx info' lists the MPI libraries that are supported",
             version);
        return;
    }

    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        const char *error = dlerror();
        /* What is there lacks something that the system or the library of the build had. */
        const char *advice = access(path, F_OK) ? "The adapter belongs beside libcollx.so"
                                                : "Build collx on this system, with its mpicc";
        warn("cannot load the adapter for %s (%s); the program runs without collx. %s", version,
             error, named ? named : advice);
        return;
    }
    if (is_for_another(handle)) {
        dlclose(handle);
        warn("the adapter %s was built with another MPI library than the program uses (%s); the "
             "program runs without collx. %s",
             path, version, named ? named : "Build collx with the mpicc of that library");
        return;
    }
    collx_adapter_open_fn *open = (collx_adapter_open_fn *)dlsym(handle, COLLX_ADAPTER_OPEN);
    if (!open) {
        warn("%s is no adapter of collx; the program runs without collx. "
             "Unset COLLX_ADAPTER or reinstall collx",
             path);
        return;
    }
    struct collx_door door = {
        .version = COLLX_DOOR_VERSION,
        .entries = COLLX_ENTRIES,
        .mpi = mpi,
        .family = adapter,
        .dir = folder,
        .real = real,
        .tool = tool,
        .route = route,
    };
    int error = open(&door, why, sizeof why);
    if (error)
        warn("the adapter for %s cannot be used: %s; the program runs without collx. %s", version,
             *why ? why : strerror(-error), named ? named : "Install all files of one version");
}

/* MPI_X as `handle` finds it, where that is neither ours nor the MPI library's own: a tool's.  Not
 * by dladdr(), which reads the MPI library's whole symbol table for each address. */
static void *tool_by(void *handle, const char *name)
{
    void *found = look_up(handle, name);

    return found && mpi && found == dlsym(mpi, name) ? NULL : found;
}

/* Let the entries jump to where `route` says.  Returns whether a library behind us has an MPI_X
 * without its PMPI_X, as those do that come with solvers for programs of one process. */
static bool fill_tables(void)
{
    bool stands_in = false;

    for (int i = 0; i < COLLX_ENTRIES; i++) {
        void *to = route[i] ? route[i] : (void *)missing;

        stands_in = stands_in || (next[i] && !real[i]);
        /* Release: a thread that jumps here without having passed our lock sees all that the
         * adapter has set up.  (The other half is in entry.S, where the machine needs one.) */
        __atomic_store_n(&collx_pmpi_table[i], to, __ATOMIC_RELEASE);
        __atomic_store_n(&collx_mpi_table[i], next[i] ? next[i] : to, __ATOMIC_RELEASE);
    }
    return stands_in;
}

static void find_mpi(void)
{
    mpi = find_loaded(is_usual, is_mpi);
    if (!mpi)
        mpi = find_loaded(is_called_mpi, is_mpi);
    if (!mpi)
        find_stand_in();
}

static void resolve(void)
{
    find = collx_find_dlsym();
    if (dlsym)
        find_mpi();
    for (int i = 0; i < COLLX_ENTRIES; i++) {
        real[i] = look_up(mpi ? mpi : behind, names[i]);
        route[i] = real[i];
        /* Without a PMPI_X the next MPI_X is all that there is, whosever it may be. */
        next[i] = real[i] ? tool_by(behind, names[i] + 1) : look_up(behind, names[i] + 1);
        /* The program's own: of a tool before us.  Or a piece of the program that jumps to ours,
         * where its code is not position-independent; that comes to the same. */
        tool[i] = tool_by(RTLD_DEFAULT, names[i] + 1);
        if (!tool[i])
            tool[i] = next[i];
    }
    if (mpi)
        load_adapter();
    const bool stands_in = fill_tables();
    if (!dlsym)
        warn("the program's C library is older than the one that collx was built with; it runs "
             "without collx. Build collx on this system, with its mpicc");
    else if (!stands_in && !mpi)
        warn(
            "an MPI function was called, but no MPI shared library is loaded (is the program "
            "linked with a static one, or with -lcollx but without -Wl,--no-as-needed before it?); "
            "it runs without collx");
}

void collx_resolve(void)
{
    /* Other threads wait here until the adapter has put itself in the way: it has to see the first
     * calls of all.  Recursive: a constructor of what is loaded with the adapter may come through
     * the door; its calls, and thus all that come now, go to the MPI library. */
    static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
    static bool begun, done;
    int keep = errno;

    pthread_mutex_lock(&lock);
    if (!begun) {
        begun = true;
        resolve();
        done = true;
    } else if (!done) {
        fill_tables();
    }
    pthread_mutex_unlock(&lock);
    errno = keep;
}
