#include "pmpi/trace.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/job.h"
#include "base/log.h"
#include "base/options.h"
#include "pmpi/calls.h"
#include "pmpi/progress.h"
#include "pmpi/types.h"
#include "pmpi/world.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static const struct collx_recorder *loaded; /* NULL: it could not be, for the reason that follows */
static char unloaded[4096 + 128];
static const struct collx_recorder *recorder; /* NULL: not tracing */
static uint32_t unknown; /* the recorder's number for what is no communicator */
/* When the run began, if that was before the recorder is opened; else 0. */
static _Atomic uint64_t began_ns;

static const char *const *route_names(void)
{
    static const char *names[65] = {"pmpi"};

    for (int i = 0; collx_algorithms[i] && i < 63; i++)
        names[i + 1] = collx_algorithms[i]->name;
    return names;
}

void collx_trace_load(void)
{
    char path[4096];

    snprintf(path, sizeof path, "%s/libcollx-trace.so", collx_door.dir);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    loaded = library ? (const struct collx_recorder *)dlsym(library, COLLX_RECORDER_SYMBOL) : NULL;
    if (!loaded) {
        snprintf(unloaded, sizeof unloaded,
                 "%s. It belongs beside libcollx.so, and needs libunwind", dlerror());
    } else if (loaded->version != COLLX_RECORDER_VERSION) {
        loaded = NULL;
        snprintf(unloaded, sizeof unloaded,
                 "%s is of another version of collx. Install all files of one", path);
    }
}

/* The first rank of a node that cannot write speaks for those after it: a disk may have room for
 * some files, a folder may be missing on one node alone. */
static void report_unwritten(const struct collx_trace_setup *setup, const char *why)
{
    char host[HOST_NAME_MAX + 1] = "";
    /* Never closed, as others may fail much later; the trace would have had a descriptor as long.
     * Closed by a program, which does that to all it finds, it is not missed. */
    int claim;

    if (!collx_job_alone(setup->world_size) && !collx_job_first_here("untraced", &claim))
        return;
    gethostname(host, sizeof host - 1);
    collx_warn("on %s traces will be missing from %s: %s. The job goes on without", host,
               setup->dir, why);
}

/* What all ranks have agreed on; 0: nothing yet.  Relaxed: a number alone. */
static _Atomic uint64_t agreed_job;

static void open_recorder(void)
{
    static char version[MPI_MAX_LIBRARY_VERSION_STRING];
    struct collx_trace_setup setup = {
        .dir = collx_option_text(COLLX_OPTION_TRACE),
        .limit = (uint64_t)collx_option_number(COLLX_OPTION_TRACE_LIMIT),
        .job = atomic_load_explicit(&agreed_job, memory_order_relaxed),
        .start_ns = atomic_load_explicit(&began_ns, memory_order_relaxed),
        .call_sites = (int)collx_option_number(COLLX_OPTION_TRACE_SITES),
        .world_rank = -1,
        .mpi = version,
        .routes = route_names(),
    };
    char why[sizeof unloaded] = "";
    int length;

    pmpi.Get_library_version(version, &length);
    version[strcspn(version, "\n")] = '\0';
    if (collx_world_up()) {
        pmpi.Comm_rank(MPI_COMM_WORLD, &setup.world_rank);
        pmpi.Comm_size(MPI_COMM_WORLD, &setup.world_size);
    }

    if (!loaded)
        snprintf(why, sizeof why, "%s", unloaded);
    else if (!loaded->open(&setup, why, sizeof why))
        recorder = loaded;

    if (recorder)
        unknown = recorder->comm(&(struct collx_trace_comm){.size = 1, .name = "(none)"});
    else
        report_unwritten(&setup, why);
}

void collx_trace_begin(uint64_t job)
{
    if (job)
        atomic_store_explicit(&agreed_job, job, memory_order_relaxed);
    if (*collx_option_text(COLLX_OPTION_TRACE))
        pthread_once(&once, open_recorder);
    /* After the end of all sessions MPI may begin again; and one's calls may have opened it. */
    if (recorder)
        recorder->reopen();
    if (recorder && job)
        recorder->adopt(job);
}

void collx_trace_set_start(uint64_t when_ns)
{
    uint64_t none = 0;

    atomic_compare_exchange_strong_explicit(&began_ns, &none, when_ns, memory_order_relaxed,
                                            memory_order_relaxed);
    if (recorder)
        recorder->reopen();
}

/* Events are recorded after their calls, so MPI is up.  In a program with sessions alone this is
 * where the file is made; not before its first collective, for it may yet call MPI_Init.  So it is
 * where MPI_Init went past collx, to the MPI library's own; then the run begins with this event. */
static bool recording(uint64_t begin_ns)
{
    if (!recorder) {
        collx_trace_set_start(begin_ns);
        collx_trace_begin(0);
    }
    return recorder;
}

void collx_trace_end(void)
{
    if (recorder)
        recorder->close();
}

/* How many communicators of this group of processes there have been before. */
static uint32_t ordinal(uint64_t group)
{
    struct seen {
        struct seen *next;
        uint64_t group;
        uint32_t count;
    };
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static struct seen *all;
    uint32_t count = 0;

    pthread_mutex_lock(&lock);
    struct seen *seen = all;
    while (seen && seen->group != group)
        seen = seen->next;
    if (!seen && (seen = calloc(1, sizeof *seen))) {
        seen->group = group;
        seen->next = all;
        all = seen;
    }
    if (seen)
        count = seen->count++;
    pthread_mutex_unlock(&lock);
    return count;
}

/* A number for a communicator that is the same on all its ranks, found without asking them: from
 * who is in it, and how many of those before it this rank has used.  That holds as long as the
 * ranks use communicators of the same group for the first time in the same order. */
static uint64_t global_number(MPI_Comm comm)
{
    MPI_Group group, world;
    int size = 0;
    uint64_t hash = COLLX_HASH_START;

    if (comm == MPI_COMM_WORLD)
        return 1;
    if (pmpi.Comm_group(comm, &group))
        return 0;
    pmpi.Group_size(group, &size);
    hash = collx_hash(hash, &size, sizeof size);
    int *ranks = malloc(2 * (size_t)size * sizeof *ranks);
    if (ranks && collx_world_up() && !pmpi.Comm_group(MPI_COMM_WORLD, &world)) {
        for (int i = 0; i < size; i++)
            ranks[i] = i;
        if (!pmpi.Group_translate_ranks(group, size, ranks, world, ranks + size))
            hash = collx_hash(hash, ranks + size, (size_t)size * sizeof *ranks);
        pmpi.Group_free(&world);
    }
    free(ranks);
    pmpi.Group_free(&group);
    uint32_t before = ordinal(hash);
    hash = collx_hash(hash, &before, sizeof before);
    return hash | 2; /* neither 0 nor 1 */
}

/* The recorder is told of a communicator when it is first used, and again when it has been set up:
 * then it is known how many nodes it is on. */
static void introduce(struct collx_comm *comm)
{
    if (comm->traced && comm->traced_nodes == comm->routes.facts.nodes)
        return;
    if (!comm->traced)
        comm->global = global_number(comm->comm);
    comm->traced_nodes = comm->routes.facts.nodes;
    collx_comm_name(comm);
    comm->traced = 1 + recorder->comm(&(struct collx_trace_comm){
                           .global = comm->global,
                           .rank = comm->rank,
                           .size = comm->size,
                           .nodes = comm->routes.facts.nodes,
                           .shared = comm->routes.segment_size,
                           .name = comm->name,
                       });
}

uint64_t collx_trace_add(struct collx_trace_event *event, MPI_Comm handle, bool refused,
                         const void *caller)
{
    int keep = errno;

    if (!recorder && (refused || !recording(event->begin_ns))) {
        errno = keep;
        return UINT64_MAX;
    }
    struct collx_comm *comm = collx_comm_look(handle);
    if (comm == &collx_comm_unknown && !refused)
        comm = collx_comm_add(handle);
    event->site = recorder->site(caller);
    event->comm = unknown;
    if (refused)
        event->reason = COLLX_REASON_BAD_ARGUMENT;
    if (comm != &collx_comm_unknown) {
        /* Also of what is not routed anyway, and of the first call: who waits for whom across two
         * groups cannot be told from one of them, and the report has to know. */
        if (comm->inter && !refused)
            event->reason = COLLX_REASON_INTERCOMM;
        introduce(comm);
        event->comm = comm->traced - 1;
        event->sequence = comm->sequence;
        comm->sequence += !refused;
    }
    uint64_t number = recorder->event(event);
    errno = keep;
    return number;
}

void collx_trace_complete(uint64_t event)
{
    if (event != UINT64_MAX)
        recorder->complete(event, collx_clock_ns());
}

bool collx_trace_looks_before(MPI_Comm comm)
{
    if (!collx_world_has_threads())
        return false;
    const struct collx_comm *known = collx_comm_look(comm);
    return known != &collx_comm_unknown && !known->inter && !collx_self_init(comm);
}

uint64_t collx_trace_bytes(bool before, int64_t count, MPI_Datatype type)
{
    const struct collx_datatype *known = before ? collx_datatype_predefined(type) : NULL;
    struct collx_datatype derived = {.size = 0};
    bool good = type != MPI_DATATYPE_NULL && count > 0;

    if (good && known)
        derived = *known;
    else if (good)
        good = before ? collx_datatype_derived(type, &derived)
                      : !pmpi.Type_size_x(type, &derived.size);
    /* Before MPI has looked at a call its numbers may be any. */
    return good ? (uint64_t)count * (uint64_t)derived.size : 0;
}

static uint64_t bytes_of(bool before, enum collx_kind kind, const struct collx_call *call)
{
    /* With root MPI_PROC_NULL, in an intercommunicator, nothing else means anything. */
    if (kind == COLLX_BARRIER || (kind == COLLX_BCAST && call->root == MPI_PROC_NULL))
        return 0;
    return collx_trace_bytes(before, call->count, (MPI_Datatype)call->datatype);
}

/* What the selecting slot found, or would have. */
static void describe(enum collx_kind kind, const struct collx_call *call,
                     struct collx_trace_event *event)
{
    event->root = kind == COLLX_BCAST ? call->root : -1;
    event->op = COLLX_OP_NONE;
    if (kind == COLLX_ALLREDUCE)
        event->op = (uint8_t)collx_op_kind((MPI_Op)call->op);
}

int collx_trace_call(enum collx_kind kind, struct collx_call *call, const void *caller)
{
    MPI_Comm comm = (MPI_Comm)call->comm;
    const bool before = collx_trace_looks_before(comm);
    const uint64_t bytes = before ? bytes_of(true, kind, call) : 0;
    uint64_t begin = collx_clock_ns();
    struct collx_slot *slot = &collx_comm_find(comm)->slot[kind];
    int error = slot->run(slot, call);
    uint64_t end = collx_clock_ns();
    bool refused =
        collx_call_is_refused(error) || collx_call_is_wrong(collx_comm_find(comm), kind, call);
    struct collx_trace_event event = {
        .begin_ns = begin,
        .end_ns = end,
        .kind = (uint8_t)kind,
        .form = COLLX_BLOCKING,
        .route = call->route,
        .reason = call->reason,
    };
    if (!error && !refused) {
        event.bytes = before ? bytes : bytes_of(false, kind, call);
        describe(kind, call, &event);
    }
    collx_trace_add(&event, comm, refused, caller);
    return error;
}
