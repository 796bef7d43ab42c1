#include "trace/writer.h"

#include "base/fd.h"
#include "base/log.h"
#include "trace/running.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LIMIT_REACHED = 1 }; /* what next_window says beside negative errnos */

static bool said;

/* Make the file reach to `size`, really: 0 or a negative errno. */
static int grow(int fd, uint64_t from, uint64_t size)
{
    struct rlimit allowed;

    /* Going past RLIMIT_FSIZE would not just fail: it raises SIGXFSZ, which kills. */
    if (!getrlimit(RLIMIT_FSIZE, &allowed) && allowed.rlim_cur != RLIM_INFINITY &&
        size > allowed.rlim_cur)
        return -EFBIG;
    int error;
    do
        error = posix_fallocate(fd, (off_t)from, (off_t)(size - from));
    while (error == EINTR);
    return -error;
}

/* A program that becomes a daemon closes what it finds open; under our number it may have a file of
 * its own since, which is none of our business. */
static bool is_open(const struct collx_trace_writer *writer)
{
    struct stat now;

    return !fstat(writer->fd, &now) && now.st_dev == writer->device && now.st_ino == writer->file;
}

static void unmap_window(struct collx_trace_writer *writer)
{
    uint64_t lead = (uintptr_t)writer->window % (uint64_t)sysconf(_SC_PAGESIZE);

    munmap((char *)writer->window - lead,
           lead + (writer->end - writer->first) * COLLX_TRACE_RECORD);
    writer->window = NULL;
}

static int next_window(struct collx_trace_writer *writer)
{
    uint64_t at = COLLX_TRACE_HEADER + writer->end * COLLX_TRACE_RECORD;
    uint64_t size = COLLX_TRACE_WINDOW;

    if (writer->limit && at + size > writer->limit)
        size = (writer->limit - at) / COLLX_TRACE_RECORD * COLLX_TRACE_RECORD;
    if (!size)
        return LIMIT_REACHED;
    if (!is_open(writer))
        return -EBADF;
    int error = grow(writer->fd, at, at + size);
    if (error)
        return error;

    /* The header has 4 KiB and pages may have 64: map from the page below, keep what is ours. */
    uint64_t lead = at % (uint64_t)sysconf(_SC_PAGESIZE);
    char *map = mmap(NULL, lead + size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
                     writer->fd, (off_t)(at - lead));
    if (map == MAP_FAILED)
        return -errno;
    if (writer->window)
        unmap_window(writer);
    writer->window = (struct collx_trace_record *)(map + lead);
    writer->first = writer->end;
    writer->end += size / COLLX_TRACE_RECORD;
    return 0;
}

static void stop(struct collx_trace_writer *writer, int error)
{
    struct collx_trace_header *header = writer->header;

    if (writer->window)
        unmap_window(writer);
    header->stop = error < 0 ? COLLX_TRACE_FAILED : COLLX_TRACE_LIMIT;
    header->stop_errno = error < 0 ? (uint32_t)-error : 0;
    /* All ranks reach the limit at about the same time: one speaks for them, the report for all. */
    if (error < 0)
        collx_warn_once(&said, "tracing stops here, the program goes on: cannot extend %s: %s; %s",
                        writer->path, strerror(-error),
                        error == -EBADF
                            ? "let the program close no descriptors that it has not opened"
                            : "make room, or set COLLX_TRACE to a folder with more of it");
    else if (header->world_rank <= 0)
        collx_warn_once(&said,
                        "tracing stops here, the program goes on: %s has reached the limit of "
                        "%llu bytes; raise it with COLLX_TRACE_LIMIT",
                        writer->path, (unsigned long long)writer->limit);
}

uint64_t collx_trace_writer_put(struct collx_trace_writer *writer,
                                const struct collx_trace_record *record)
{
    uint64_t number = UINT64_MAX;

    pthread_mutex_lock(&writer->lock);
    struct collx_trace_header *header = writer->header;
    if (writer->next == writer->end && !header->stop && !header->end_ns) {
        int keep = errno;
        int error = next_window(writer);
        if (error)
            stop(writer, error);
        errno = keep;
    }
    if (writer->window) {
        struct collx_trace_record *to = &writer->window[writer->next - writer->first];
        memcpy(to->words, record->words, sizeof to->words);
        /* The partner is is_written() in trace/reader.c, after this process was killed or while it
         * runs: what is before a tag that it has seen is all there.  With a plain store the
         * compiler may store the tag first, and a kill in between leaves half an event that looks
         * like a whole one. */
        __atomic_store_n(&to->last, record->last, __ATOMIC_RELEASE);
        number = writer->next++;
    } else if (header->stop && collx_trace_tag(record) == COLLX_TRACE_EVENT) {
        header->dropped++;
    }
    pthread_mutex_unlock(&writer->lock);
    return number;
}

/* Whether the job that wrote `path` still does, on this node. */
static bool in_use(const char *path, const struct collx_trace_header *mine)
{
    struct collx_trace_header header;
    /* Not to be kept waiting by a FIFO of that name. */
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);

    /* What may not be read is another user's, who may well be at it. */
    if (fd < 0)
        return errno == EACCES;
    ssize_t got = pread(fd, &header, sizeof header, 0);
    close(fd);
    return got == sizeof header && !memcmp(header.magic, mine->magic, sizeof header.magic) &&
           header.job != mine->job && header.pid != mine->pid &&
           collx_trace_is_running(&header, mine->boot_id);
}

static int make_folder(const char *dir, char *why, size_t size)
{
    if (!mkdir(dir, 0777) || errno == EEXIST)
        return 0;
    int error = -errno;
    snprintf(why, size,
             "cannot create the trace folder %s: %s; set COLLX_TRACE to one that can be "
             "written",
             dir, strerror(-error));
    return error;
}

/* The names of a file: until its header is complete, so that readers never see half of one; then;
 * and where another job has that one. */
struct names {
    char fresh[sizeof((struct collx_trace_writer *)NULL)->path];
    char other[sizeof((struct collx_trace_writer *)NULL)->path];
};

static int choose_names(struct collx_trace_writer *writer, struct names *names, const char *dir,
                        const struct collx_trace_header *header, char *why, size_t size)
{
    char name[128];

    snprintf(name, sizeof name, "pid-%s-%u" COLLX_TRACE_SUFFIX, header->host, header->pid);
    int length = snprintf(names->other, sizeof names->other, "%s/%s", dir, name);
    if (header->world_rank >= 0)
        snprintf(name, sizeof name, "rank-%06d" COLLX_TRACE_SUFFIX, header->world_rank);
    snprintf(writer->path, sizeof writer->path, "%s/%s", dir, name);
    int hidden = snprintf(names->fresh, sizeof names->fresh, "%s/.%s.%s.%u", dir, name,
                          header->host, header->pid);
    if (length < (int)sizeof names->other && hidden < (int)sizeof names->fresh)
        return 0;
    snprintf(why, size, "the name of the trace folder is too long: %.64s…", dir);
    return -ENAMETOOLONG;
}

/* The file, open, under its first name: with room for records, and its header. */
static int fill(struct collx_trace_writer *writer, const struct collx_trace_header *header)
{
    struct stat status;

    if (fstat(writer->fd, &status))
        return -errno;
    writer->device = status.st_dev;
    writer->file = status.st_ino;
    int error = grow(writer->fd, 0, COLLX_TRACE_HEADER);
    if (error)
        return error;
    void *mapped =
        mmap(NULL, COLLX_TRACE_HEADER, PROT_READ | PROT_WRITE, MAP_SHARED, writer->fd, 0);
    if (mapped == MAP_FAILED)
        return -errno;
    writer->header = mapped;
    error = next_window(writer);
    if (!error)
        memcpy(writer->header, header, sizeof *header);
    return error;
}

/* Give a file another name.  -EEXIST: something is called so already. */
static int name_file(const char *from, const char *path)
{
    /* Not every file system has a rename that replaces nothing: NFS has not. */
    if (!link(from, path)) {
        unlink(from);
        return 0;
    }
    /* Nor has every one links. */
    if (errno == EEXIST || !access(path, F_OK))
        return -EEXIST;
    return rename(from, path) ? -errno : 0;
}

/* Remove what an earlier job has left.  Since somebody looked another one may have begun, and put
 * its own there: so it is renamed first, and what is in use then gets its name back; or if by now
 * even a third job has that, it keeps the other one. */
static int clear_name(const char *path, const char *other, const struct collx_trace_header *mine)
{
    if (rename(path, other))
        return errno == ENOENT ? 0 : -errno;
    const bool lives = in_use(other, mine);
    const int error = lives || !unlink(other) ? 0 : -errno;
    if (lives || error)
        name_file(other, path);
    return error;
}

static int take_name(struct collx_trace_writer *writer, const struct names *names,
                     const struct collx_trace_header *header)
{
    int error, tries = 100; /* each is lost to another job that begins at this moment */
    char old[sizeof names->other + 32];

    while ((error = name_file(names->fresh, writer->path)) == -EEXIST && tries--) {
        snprintf(old, sizeof old, "%s.%d" COLLX_TRACE_SUFFIX, names->other, tries);
        if (in_use(writer->path, header))
            memcpy(writer->path, names->other, sizeof names->other);
        else if ((error = clear_name(writer->path, old, header)))
            break;
    }
    return error;
}

static void undo(struct collx_trace_writer *writer, const struct names *names)
{
    if (writer->window)
        unmap_window(writer);
    if (writer->header)
        munmap(writer->header, COLLX_TRACE_HEADER);
    writer->header = NULL;
    unlink(names->fresh);
    close(writer->fd);
}

int collx_trace_writer_init(struct collx_trace_writer *writer, const char *dir, uint64_t limit,
                            const struct collx_trace_header *header, char *why, size_t size)
{
    struct names names;

    if (limit && limit < COLLX_TRACE_HEADER + COLLX_TRACE_RECORD) {
        snprintf(why, size,
                 "COLLX_TRACE_LIMIT is %llu bytes, which no trace fits in; the least is "
                 "%d",
                 (unsigned long long)limit, COLLX_TRACE_HEADER + COLLX_TRACE_RECORD);
        return -EINVAL;
    }
    int error = make_folder(dir, why, size);
    if (!error)
        error = choose_names(writer, &names, dir, header, why, size);
    if (error)
        return error;

    unlink(names.fresh);
    writer->fd =
        collx_fd_own(open(names.fresh, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666));
    if (writer->fd < 0) {
        error = -errno;
        snprintf(why, size, "cannot create %s: %s; set COLLX_TRACE to a folder that can be written",
                 writer->path, strerror(-error));
        return error;
    }
    writer->limit = limit;
    writer->first = writer->next = writer->end = 0;
    writer->window = NULL;
    writer->header = NULL;
    error = fill(writer, header);
    if (!error)
        error = take_name(writer, &names, header);
    if (error) {
        snprintf(why, size, "cannot write %s: %s; make room, or set COLLX_TRACE to another folder",
                 writer->path, strerror(-error));
        undo(writer, &names);
    }
    return error;
}

void collx_trace_writer_pause(struct collx_trace_writer *writer, uint64_t end_ns)
{
    pthread_mutex_lock(&writer->lock);
    int keep = errno;
    writer->header->records = writer->next;
    writer->header->end_ns = end_ns;
    if (writer->window)
        unmap_window(writer);
    if (writer->next < writer->end && is_open(writer)) {
        /* If this fails the file keeps some zeros at its end, which mean nothing. */
        int kept =
            ftruncate(writer->fd, (off_t)(COLLX_TRACE_HEADER + writer->next * COLLX_TRACE_RECORD));
        (void)kept;
    }
    writer->end = writer->next;
    errno = keep;
    pthread_mutex_unlock(&writer->lock);
}

void collx_trace_writer_resume(struct collx_trace_writer *writer)
{
    pthread_mutex_lock(&writer->lock);
    writer->header->end_ns = 0;
    pthread_mutex_unlock(&writer->lock);
}

void collx_trace_writer_adopt(struct collx_trace_writer *writer, uint64_t job)
{
    pthread_mutex_lock(&writer->lock);
    writer->header->job = job;
    pthread_mutex_unlock(&writer->lock);
}
