/* What the adapter calls: describes the process in the header, turns events, communicators and call
 * sites into records.  See recorder.h. */
#include "trace/recorder.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/job.h"
#include "trace/callsite.h"
#include "trace/writer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct collx_trace_writer writer = {.lock = PTHREAD_MUTEX_INITIALIZER};
/* NO_FILE before open(), and in the children of a fork: they share the mapping, and must not write
 * into the trace of their parent. */
static enum { NO_FILE, RECORDING, CLOSED } state;
static uint32_t comms, strings;

static bool is_recording(void)
{
    /* Acquire: pairs with the release where it becomes RECORDING; without it a thread that makes a
     * call meanwhile might use a writer that is not made yet. */
    return __atomic_load_n(&state, __ATOMIC_ACQUIRE) == RECORDING;
}

static void stop_in_child(void)
{
    __atomic_store_n(&state, NO_FILE, __ATOMIC_RELAXED);
}

/* A job number from what launchers leave behind, else from the process that started this one.  A
 * process that is alone shares it with nobody: what started it, a shell or the launcher of another
 * MPI, may have started more of that kind. */
static uint64_t guess_job(const struct collx_trace_header *header)
{
    uint64_t hash = collx_job_launched();

    if (!hash)
        hash = collx_hash(COLLX_HASH_START ^ (uint64_t)getppid(), header->boot_id,
                          strlen(header->boot_id));
    if (collx_job_alone(header->world_size)) {
        hash = collx_hash(hash, &header->pid, sizeof header->pid);
        hash = collx_hash(hash, &header->start_ns, sizeof header->start_ns);
    }
    return hash ? hash : 1;
}

static void describe(struct collx_trace_header *header, const struct collx_trace_setup *setup)
{
    struct timespec now;
    uint64_t now_ns = collx_clock_ns();

    memcpy(header->magic, COLLX_TRACE_MAGIC, sizeof header->magic);
    header->version = COLLX_TRACE_VERSION;
    header->byte_order = COLLX_TRACE_BYTE_ORDER;
    header->header_bytes = COLLX_TRACE_HEADER;
    header->record_bytes = COLLX_TRACE_RECORD;
    header->world_rank = setup->world_rank;
    header->world_size = setup->world_size;
    header->start_ns = setup->start_ns ? setup->start_ns : now_ns;
    clock_gettime(CLOCK_REALTIME, &now);
    header->start_realtime_ns =
        (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec - (now_ns - header->start_ns);
    header->pid = (uint32_t)getpid();
    collx_file_text("/proc/sys/kernel/random/boot_id", header->boot_id, sizeof header->boot_id);
    collx_file_text("/proc/self/cmdline", header->command, sizeof header->command);
    gethostname(header->host, sizeof header->host - 1);
    snprintf(header->release, sizeof header->release, "%s", COLLX_RELEASE);
    snprintf(header->mpi, sizeof header->mpi, "%s", setup->mpi ? setup->mpi : "");
    header->job = setup->job ? setup->job : guess_job(header);
}

/* Store a string, in as many records as it takes; its number, or 0 for the empty one. */
static uint32_t put_string(const char *text)
{
    size_t left = text ? strlen(text) : 0;

    if (!left)
        return 0;
    uint32_t id = __atomic_add_fetch(&strings, 1, __ATOMIC_RELAXED);
    while (left) {
        struct collx_trace_record record = {.text_small = {.id = id, .tag = COLLX_TRACE_STRING}};
        record.text_small.size = (uint8_t)(left < COLLX_TRACE_TEXT ? left : COLLX_TRACE_TEXT);
        memcpy(record.text, text, record.text_small.size);
        collx_trace_writer_put(&writer, &record);
        text += record.text_small.size;
        left -= record.text_small.size;
    }
    return id;
}

static void put_module(uint32_t id, const struct collx_trace_module *module)
{
    struct collx_trace_record record = {
        .module = {.id = id, .path = put_string(module->path)},
        .module_small = {.build_id_size = module->build_id_size, .tag = COLLX_TRACE_MODULE}};

    memcpy(record.module.build_id, module->build_id, module->build_id_size);
    collx_trace_writer_put(&writer, &record);
}

static void put_site(uint32_t id, uint32_t module, uint64_t offset)
{
    struct collx_trace_record record = {.site = {.offset = offset, .id = id, .module = module},
                                        .event_small.tag = COLLX_TRACE_SITE};

    collx_trace_writer_put(&writer, &record);
}

static bool want_sites;

static int open_trace(const struct collx_trace_setup *setup, char *why, size_t size)
{
    static bool handler;
    struct collx_trace_header header = {0};
    int keep = errno;

    __atomic_store_n(&state, NO_FILE, __ATOMIC_RELAXED);
    pthread_mutex_init(&writer.lock, NULL); /* anew: this may be the child of a fork */
    collx_callsite_reset();
    comms = strings = 0;
    want_sites = setup->call_sites;
    describe(&header, setup);
    int error = collx_trace_writer_init(&writer, setup->dir, setup->limit, &header, why, size);
    if (error)
        goto done;

    for (uint32_t i = 0; setup->routes && setup->routes[i]; i++) {
        struct collx_trace_record record = {
            .route = {.id = i, .name = put_string(setup->routes[i])},
            .event_small.tag = COLLX_TRACE_ROUTE};
        collx_trace_writer_put(&writer, &record);
    }
    if (!handler)
        pthread_atfork(NULL, NULL, stop_in_child);
    handler = true;
    __atomic_store_n(&state, RECORDING, __ATOMIC_RELEASE);
done:
    errno = keep;
    return error;
}

static uint32_t find_site(const void *caller)
{
    static const struct collx_callsite_ops ops = {put_module, put_site};

    if (!want_sites || !is_recording())
        return 0;
    int keep = errno;
    uint32_t site = collx_callsite_find(caller, &ops);
    errno = keep;
    return site;
}

static uint32_t put_comm(const struct collx_trace_comm *comm)
{
    if (!is_recording())
        return 0;
    uint32_t id = __atomic_add_fetch(&comms, 1, __ATOMIC_RELAXED);
    struct collx_trace_record record = {.comm = {.global = comm->global,
                                                 .id = id,
                                                 .rank = comm->rank,
                                                 .size = comm->size,
                                                 .nodes = comm->nodes,
                                                 .name = put_string(comm->name),
                                                 .shared = comm->shared},
                                        .event_small.tag = COLLX_TRACE_COMM};
    collx_trace_writer_put(&writer, &record);
    return id;
}

static uint64_t put_event(const struct collx_trace_event *event)
{
    if (!is_recording())
        return UINT64_MAX;
    struct collx_trace_record record = {.event = {.begin_ns = event->begin_ns,
                                                  .end_ns = event->end_ns,
                                                  .bytes = event->bytes,
                                                  .comm = event->comm,
                                                  .sequence = event->sequence,
                                                  .site = event->site,
                                                  .root = event->root},
                                        .event_small = {.kind = event->kind,
                                                        .form = event->form,
                                                        .op = event->op,
                                                        .route = event->route,
                                                        .reason = event->reason,
                                                        .tag = COLLX_TRACE_EVENT}};
    return collx_trace_writer_put(&writer, &record);
}

static void put_completion(uint64_t event, uint64_t when_ns)
{
    if (event == UINT64_MAX || !is_recording())
        return;
    struct collx_trace_record record = {.completion = {.event = event, .when_ns = when_ns},
                                        .event_small.tag = COLLX_TRACE_COMPLETION};
    collx_trace_writer_put(&writer, &record);
}

static void adopt_job(uint64_t job)
{
    if (is_recording())
        collx_trace_writer_adopt(&writer, job);
}

static void close_trace(void)
{
    if (!is_recording())
        return;
    __atomic_store_n(&state, CLOSED, __ATOMIC_RELAXED);
    collx_trace_writer_pause(&writer, collx_clock_ns());
}

static void reopen_trace(void)
{
    if (__atomic_load_n(&state, __ATOMIC_RELAXED) != CLOSED)
        return;
    collx_trace_writer_resume(&writer);
    /* Release, as in open_trace(). */
    __atomic_store_n(&state, RECORDING, __ATOMIC_RELEASE);
}

__attribute__((visibility("default"))) extern const struct collx_recorder collx_recorder;

const struct collx_recorder collx_recorder = {
    .version = COLLX_RECORDER_VERSION,
    .open = open_trace,
    .site = find_site,
    .comm = put_comm,
    .event = put_event,
    .complete = put_completion,
    .adopt = adopt_job,
    .close = close_trace,
    .reopen = reopen_trace,
};
