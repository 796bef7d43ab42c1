/* Finds the files of a job, and numbers what they define. */
#include "report/collect.h"

#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

void collx_problem_add(struct collx_summary *summary, const char *format, ...)
{
    va_list args;
    char *text;

    va_start(args, format);
    int length = vasprintf(&text, format, args);
    va_end(args);
    if (length < 0)
        return;
    collx_text_clean(text, '?'); /* names of files are in it */
    if (collx_array_grow(&summary->problems, summary->problems_count, sizeof text))
        summary->problems[summary->problems_count++] = text;
    else
        free(text);
}

static int is_trace_name(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name), suffix = strlen(COLLX_TRACE_SUFFIX);

    return *entry->d_name != '.' && length > suffix &&
           !strcmp(entry->d_name + length - suffix, COLLX_TRACE_SUFFIX);
}

static int add_file(struct collx_summary *summary, const char *path)
{
    struct collx_collector *collector = summary->collector;
    struct collx_file file = {0};
    char why[512];
    int error = collx_trace_open(&file.trace, path, why, sizeof why);

    if (error == -EMFILE)
        return error;
    if (error) {
        collx_problem_add(summary, "%s", why);
        summary->damaged = true;
        return 0;
    }
    if (!collx_array_grow(&collector->files, collector->files_count, sizeof file)) {
        collx_trace_close(file.trace);
        return -ENOMEM;
    }
    collector->files[collector->files_count++] = file;
    return 0;
}

static int add_files(struct collx_summary *summary, const char *path, char *why, size_t size)
{
    struct stat facts;
    struct dirent **entries;

    if (stat(path, &facts)) {
        int error = -errno;
        snprintf(why, size, "%s: %s; give the folder that COLLX_TRACE named", path,
                 strerror(-error));
        return error;
    }
    if (!S_ISDIR(facts.st_mode))
        return add_file(summary, path);

    int found = scandir(path, &entries, is_trace_name, alphasort), error = 0;
    if (found < 0) {
        error = -errno;
        snprintf(why, size, "%s: cannot be read: %s", path, strerror(-error));
        return error;
    }
    if (!found) {
        snprintf(why, size,
                 "%s: no traces in it (files named *" COLLX_TRACE_SUFFIX
                 "); give the folder that COLLX_TRACE named when the program ran",
                 path);
        error = COLLX_EINVALID;
    }
    for (int i = 0; i < found; i++) {
        char *name;
        if (!error && asprintf(&name, "%s/%s", path, entries[i]->d_name) < 0)
            error = -ENOMEM;
        else if (!error) {
            error = add_file(summary, name);
            free(name);
            if (error == -EMFILE)
                collx_problem_add(summary,
                                  "%s and the %d after it are not counted: no more files may be "
                                  "open at a time; raise that limit (ulimit -n)",
                                  entries[i]->d_name, found - i - 1);
        }
        free(entries[i]);
    }
    free(entries);
    if (error == -EMFILE) {
        summary->damaged = summary->collector->unread = true;
        error = 0;
    }
    return error;
}

static void drop_file(struct collx_collector *collector, uint32_t i)
{
    collx_trace_close(collector->files[i].trace);
    collector->files_count--;
    memmove(&collector->files[i], &collector->files[i + 1],
            (collector->files_count - i) * sizeof *collector->files);
}

/* By the time of day. */
static uint64_t end_of(const struct collx_trace *trace)
{
    return trace->header.start_realtime_ns + (collx_trace_end_ns(trace) - trace->header.start_ns);
}

/* The newest job, or the first of those that ran when that began: it may be their child. */
static uint64_t find_job(const struct collx_collector *collector)
{
    const struct collx_trace *newest = NULL, *first;

    for (uint32_t i = 0; i < collector->files_count; i++) {
        const struct collx_trace *trace = collector->files[i].trace;
        if (!newest || trace->header.start_realtime_ns >= newest->header.start_realtime_ns)
            newest = trace;
    }
    first = newest;
    for (uint32_t i = 0; i < collector->files_count; i++) {
        const struct collx_trace *trace = collector->files[i].trace;
        if (trace->header.start_realtime_ns < first->header.start_realtime_ns &&
            end_of(trace) > newest->header.start_realtime_ns)
            first = trace;
    }
    return first ? first->header.job : 0;
}

/* One job is shown.  For every other one there is a line that says how to see it. */
static void choose_job(struct collx_summary *summary, uint64_t wanted)
{
    struct collx_collector *collector = summary->collector;

    summary->job = wanted ? wanted : find_job(collector);
    for (uint32_t i = 0; i < collector->files_count;) {
        struct collx_trace *trace = collector->files[i].trace;
        if (trace->header.job == summary->job) {
            i++;
            continue;
        }
        uint64_t job = trace->header.job;
        time_t start = (time_t)(trace->header.start_realtime_ns / 1000000000u);
        char *name = strdup(trace->name), when[64] = "";
        struct tm calendar;
        uint32_t more = 0;

        if (localtime_r(&start, &calendar))
            strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S", &calendar);
        drop_file(collector, i);
        for (uint32_t j = i; j < collector->files_count;)
            if (collector->files[j].trace->header.job == job) {
                drop_file(collector, j);
                more++;
            } else {
                j++;
            }
        char others[64] = "";
        if (more)
            snprintf(others, sizeof others, " and %u more", more);
        collx_problem_add(summary,
                          "%s%s: of another job, begun %s, and not counted; --job %016" PRIx64
                          " shows that one",
                          name ? name : "", others, when, job);
        summary->damaged = true;
        free(name);
    }
}

static int by_rank(const void *a, const void *b)
{
    const struct collx_trace *left = ((const struct collx_file *)a)->trace;
    const struct collx_trace *right = ((const struct collx_file *)b)->trace;
    /* Those without a rank come last. */
    uint32_t rank_left = (uint32_t)left->header.world_rank;
    uint32_t rank_right = (uint32_t)right->header.world_rank;

    if (rank_left != rank_right)
        return rank_left < rank_right ? -1 : 1;
    return strcmp(left->name, right->name);
}

static void drop_doubles(struct collx_summary *summary)
{
    struct collx_collector *collector = summary->collector;

    if (collector->files_count)
        qsort(collector->files, collector->files_count, sizeof *collector->files, by_rank);
    for (uint32_t i = 1; i < collector->files_count;) {
        const struct collx_trace *first = collector->files[i - 1].trace;
        const struct collx_trace *second = collector->files[i].trace;
        if (second->header.world_rank < 0 ||
            second->header.world_rank != first->header.world_rank) {
            i++;
            continue;
        }
        collx_problem_add(summary, "%s: of rank %d, like %s, and not counted", second->name,
                          second->header.world_rank, first->name);
        summary->damaged = true;
        drop_file(collector, i);
    }
}

static int largest_world(const struct collx_collector *collector)
{
    int size = 0;

    for (uint32_t i = 0; i < collector->files_count; i++)
        if (collector->files[i].trace->header.world_size > size)
            size = collector->files[i].trace->header.world_size;
    return size;
}

static void report_missing(struct collx_summary *summary)
{
    const struct collx_collector *collector = summary->collector;
    const int size = largest_world(collector);
    int expected = 0, missing = 0;
    char list[160] = "";
    size_t length = 0;

    for (uint32_t i = 0; i <= collector->files_count; i++) {
        int rank = i < collector->files_count ? collector->files[i].trace->header.world_rank : size;
        if (rank > expected) {
            missing += rank - expected;
            if (length < 120)
                length += (size_t)snprintf(list + length, sizeof list - length,
                                           rank - expected > 1 ? "%s%d–%d" : "%s%d",
                                           length ? ", " : "", expected, rank - 1);
            else if (length < 150)
                length += (size_t)snprintf(list + length, sizeof list - length, " …");
        }
        if (rank >= expected)
            expected = rank < size ? rank + 1 : size;
    }
    if (missing)
        collx_problem_add(summary,
                          "no trace of rank%s %s: the job was killed early, or these ranks wrote "
                          "to another folder, or could not, as the first to fail on a node said",
                          missing > 1 ? "s" : "", list);
}

/* A process that does not see the whole of /proc knows no boot id. */
static bool same_node(const struct collx_trace_header *a, const struct collx_trace_header *b)
{
    return strcmp(a->boot_id, b->boot_id) == 0 && (*a->boot_id || strcmp(a->host, b->host) == 0);
}

/* Ranks of a node share a clock, so they get the same shift: what its first file says. */
static void align_clocks(struct collx_summary *summary)
{
    struct collx_collector *collector = summary->collector;

    for (uint32_t i = 0; i < collector->files_count; i++) {
        struct collx_file *file = &collector->files[i];
        const struct collx_trace_header *header = &file->trace->header;
        uint32_t j = 0;
        while (j < i && !same_node(&collector->files[j].trace->header, header))
            j++;
        summary->nodes += i == j;
        file->shift = i == j ? (int64_t)header->start_realtime_ns - (int64_t)header->start_ns
                             : collector->files[j].shift;
    }
}

/* That both know its name need not be: it may have got one later, or on some ranks alone. */
static bool same_instance(const void *elements, uint32_t element, const void *key)
{
    const struct collx_instance *a = (const struct collx_instance *)elements + element, *b = key;

    return a->global == b->global && a->size == b->size &&
           (!*a->name || !*b->name || !strcmp(a->name, b->name));
}

static bool same_definition(const void *elements, uint32_t element, const void *key)
{
    const struct collx_trace_read_comm *a = elements, *b = key;

    return a[element].global == b->global && a[element].size == b->size;
}

static uint64_t hash_comm(const struct collx_trace_read_comm *comm)
{
    return collx_index_hash(comm->global, (uint64_t)comm->size);
}

/* False: out of memory. */
static bool add_rank(const struct collx_collector *collector, struct collx_instance *instance,
                     int rank)
{
    /* With one rank there is nothing to find out, and where not all ranks left a trace it does not
     * matter. */
    if (instance->size < 2 || (uint32_t)instance->size > collector->files_count)
        return true;
    if (!instance->there)
        instance->there = calloc((size_t)instance->size, sizeof *instance->there);
    if (!instance->there)
        return false;
    instance->mixed |= instance->there[rank];
    instance->there[rank] = true;
    return true;
}

/* Which communicator that is of which file `number` knows so much; UINT32_MAX: out of memory. */
static uint32_t find_instance(struct collx_collector *collector, uint32_t number,
                              const struct collx_trace_read_comm *comm)
{
    const struct collx_instance instance = {
        .global = comm->global, .name = comm->name, .size = comm->size};

    if (!collx_array_grow(&collector->instances, collector->instances_count, sizeof instance))
        return UINT32_MAX;
    uint32_t at = collx_index_find(&collector->instance_index, hash_comm(comm), same_instance,
                                   collector->instances, &instance, collector->instances_count);
    if (at == UINT32_MAX)
        return at;
    if (at == collector->instances_count)
        collector->instances[collector->instances_count++] = instance;
    struct collx_instance *known = &collector->instances[at];
    if (*comm->name)
        known->name = comm->name;
    if (comm->shared > known->shared)
        known->shared = comm->shared;
    if (known->files && known->last_file == number)
        return at;
    known->files++;
    known->last_file = number;
    return add_rank(collector, known, comm->rank) ? at : UINT32_MAX;
}

/* A file may define a communicator several times: the last one is what it knows best. */
static int number_comms(struct collx_collector *collector, uint32_t number)
{
    struct collx_file *file = &collector->files[number];
    const struct collx_trace_read_comm *comms = file->trace->comms;
    const uint32_t count = file->trace->comms_count;
    struct collx_index index = {0};
    bool enough = (file->comm = calloc(count, sizeof *file->comm));

    for (uint32_t i = count; enough && i-- > 0;) {
        file->comm[i] =
            collx_index_find(&index, hash_comm(&comms[i]), same_definition, comms, &comms[i], i);
        enough = file->comm[i] != UINT32_MAX;
    }
    for (uint32_t i = 0; enough && i < count; i++) {
        file->comm[i] = find_instance(collector, number, &comms[file->comm[i]]);
        enough = file->comm[i] != UINT32_MAX;
    }
    collx_index_finish(&index);
    return enough ? 0 : -ENOMEM;
}

static bool same_comm(const void *elements, uint32_t element, const void *key)
{
    const struct collx_report_comm *a = (const struct collx_report_comm *)elements + element;
    const struct collx_report_comm *b = key;

    return a->size == b->size && !strcmp(a->name, b->name);
}

static uint64_t hash_text(uint64_t hash, const void *text, size_t length)
{
    return collx_index_hash(collx_hash(hash, text, length), length);
}

/* After all files were looked at: a name may have been known to a later one only. */
static int group_comms(struct collx_summary *summary)
{
    struct collx_collector *collector = summary->collector;

    for (uint32_t i = 0; i < collector->instances_count; i++) {
        struct collx_instance *instance = &collector->instances[i];
        struct collx_report_comm comm = {.name = instance->name, .size = instance->size};
        uint64_t hash = hash_text((uint64_t)comm.size, comm.name, strlen(comm.name));

        if (!collx_array_grow(&summary->comms, summary->comms_count, sizeof comm))
            return -ENOMEM;
        uint32_t at = collx_index_find(&collector->comm_index, hash, same_comm, summary->comms,
                                       &comm, summary->comms_count);
        if (at == UINT32_MAX)
            return -ENOMEM;
        if (at == summary->comms_count)
            summary->comms[summary->comms_count++] = comm;
        summary->comms[at].instances++;
        if (instance->shared > summary->comms[at].shared)
            summary->comms[at].shared = instance->shared;
        summary->comms[at].mixed |= instance->mixed;
        instance->comm = at;
    }
    for (uint32_t i = 0; i < summary->comms_count; i++) {
        const struct collx_report_comm *comm = &summary->comms[i];
        if (comm->mixed)
            collx_problem_add(summary,
                              "%s%ssome communicators of %d ranks cannot be told apart (the "
                              "program has threads, or no MPI_COMM_WORLD), and waits on them are "
                              "not counted",
                              comm->name, *comm->name ? ": " : "", comm->size);
    }
    return 0;
}

static bool same_module(const void *elements, uint32_t element, const void *key)
{
    const struct collx_report_module *a = (const struct collx_report_module *)elements + element;
    const struct collx_report_module *b = key;

    return a->build_id_size == b->build_id_size &&
           !memcmp(a->build_id, b->build_id, a->build_id_size) && !strcmp(a->path, b->path);
}

static bool same_site(const void *elements, uint32_t element, const void *key)
{
    const struct collx_report_site *a = (const struct collx_report_site *)elements + element;
    const struct collx_report_site *b = key;

    return a->module == b->module && a->offset == b->offset;
}

static int number_sites(struct collx_summary *summary, struct collx_file *file)
{
    struct collx_collector *collector = summary->collector;
    uint32_t *modules = calloc(file->trace->modules_count, sizeof *modules);
    int error = -ENOMEM;

    file->site = calloc(file->trace->sites_count, sizeof *file->site);
    if (!modules || !file->site)
        goto done;
    for (uint32_t i = 0; i < file->trace->modules_count; i++) {
        const struct collx_trace_read_module *from = &file->trace->modules[i];
        struct collx_report_module module = {from->path, from->build_id, from->build_id_size};
        uint64_t hash = hash_text(from->build_id_size, from->build_id, from->build_id_size);

        hash = hash_text(hash, from->path, strlen(from->path));
        if (!collx_array_grow(&summary->modules, summary->modules_count, sizeof module))
            goto done;
        modules[i] = collx_index_find(&collector->module_index, hash, same_module, summary->modules,
                                      &module, summary->modules_count);
        if (modules[i] == UINT32_MAX)
            goto done;
        if (modules[i] == summary->modules_count)
            summary->modules[summary->modules_count++] = module;
    }
    for (uint32_t i = 0; i < file->trace->sites_count; i++) {
        const struct collx_trace_read_site *from = &file->trace->sites[i];
        struct collx_report_site site = {modules[from->module], from->offset};

        if (!collx_array_grow(&summary->sites, summary->sites_count, sizeof site))
            goto done;
        file->site[i] =
            collx_index_find(&collector->site_index, collx_index_hash(site.module, site.offset),
                             same_site, summary->sites, &site, summary->sites_count);
        if (file->site[i] == UINT32_MAX)
            goto done;
        if (file->site[i] == summary->sites_count)
            summary->sites[summary->sites_count++] = site;
    }
    error = 0;
done:
    free(modules);
    return error;
}

static int number_routes(struct collx_summary *summary, struct collx_file *file)
{
    file->route = calloc(file->trace->routes_count + 1, sizeof *file->route);
    if (!file->route)
        return -ENOMEM;
    for (uint32_t i = 0; i < file->trace->routes_count; i++) {
        uint32_t at = 0;
        while (at < summary->routes_count && strcmp(summary->routes[at], file->trace->routes[i]))
            at++;
        if (at == summary->routes_count) {
            if (!collx_array_grow(&summary->routes, at, sizeof *summary->routes))
                return -ENOMEM;
            summary->routes[at] = file->trace->routes[i];
            summary->routes_count++;
        }
        file->route[i] = at;
    }
    return 0;
}

/* What is to be said about each file; once for neighbours of which it is the same. */
static void report_files(struct collx_summary *summary)
{
    const struct collx_collector *collector = summary->collector;
    char problem[256], next[256];

    for (uint32_t i = 0, last; i < collector->files_count; i = last + 1) {
        const struct collx_trace *trace = collector->files[last = i].trace;
        if (!collx_trace_problem(trace, problem, sizeof problem))
            continue;
        while (last + 1 < collector->files_count &&
               collx_trace_problem(collector->files[last + 1].trace, next, sizeof next) &&
               !strcmp(problem, next))
            last++;
        const char *name = collector->files[last].trace->name;
        if (last == i)
            collx_problem_add(summary, "%s: %s", trace->name, problem);
        else
            collx_problem_add(summary, "%s to %s: %s", trace->name, name, problem);
    }
}

int collx_load(struct collx_summary *summary, const char *path,
               const struct collx_report_options *options, char *why, size_t size)
{
    struct collx_collector *collector = summary->collector;
    struct rlimit files;

    /* A file a rank is open at a time. */
    if (!getrlimit(RLIMIT_NOFILE, &files)) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    int error = add_files(summary, path, why, size);
    if (error)
        return error;
    bool any = collector->files_count;
    choose_job(summary, options->job);
    drop_doubles(summary);
    if (!collector->files_count) {
        if (any)
            snprintf(why, size, "%s: none of the traces in it is of job %016" PRIx64, path,
                     options->job);
        else
            snprintf(why, size, "%s: none of the traces in it can be read", path);
        return COLLX_EINVALID;
    }
    align_clocks(summary);
    if (!collector->unread)
        report_missing(summary);
    report_files(summary);

    summary->ranks_count = collector->files_count;
    summary->ranks = calloc(summary->ranks_count, sizeof *summary->ranks);
    error = summary->ranks ? 0 : -ENOMEM;
    /* Those without a rank come behind all that there could be. */
    uint32_t number = (uint32_t)largest_world(collector);
    for (uint32_t i = 0; !error && i < collector->files_count; i++) {
        struct collx_file *file = &collector->files[i];
        const struct collx_trace *trace = file->trace;
        summary->damaged |= trace->invalid > 0 || trace->lost > 0;
        summary->ranks[i].trace = trace;
        summary->ranks[i].number =
            trace->header.world_rank >= 0 ? (uint32_t)trace->header.world_rank : number++;
        summary->ranks[i].run_ns = collx_trace_end_ns(trace) - trace->header.start_ns;
        summary->ranks[i].seen_ns = collx_trace_seen_ns(trace) - trace->header.start_ns;
        summary->seen_ns += summary->ranks[i].seen_ns;
        error = number_comms(collector, i);
        if (!error)
            error = number_sites(summary, file);
        if (!error)
            error = number_routes(summary, file);
    }
    return error ? error : group_comms(summary);
}
