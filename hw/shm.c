#include "hw/shm.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE /* Linux 5.14 */
#define MADV_POPULATE_WRITE 23
#endif

enum { NUMA_NODES = 1024, NODE_BITS = 8 * sizeof(unsigned long) };

static uint64_t own_node;

static void find_own_node(void)
{
    uint64_t hash = COLLX_HASH_START;
    char text[256];
    struct stat namespace;

    collx_file_text("/proc/sys/kernel/random/boot_id", text, sizeof text);
    hash = collx_hash(hash, text, strlen(text));
    if (!gethostname(text, sizeof text)) {
        text[sizeof text - 1] = '\0';
        hash = collx_hash(hash, text, strlen(text));
    }
    /* Two containers may share a kernel and a host name, and still not see each other's /proc. */
    if (!stat("/proc/self/ns/pid", &namespace))
        hash = collx_hash(hash, &namespace.st_ino, sizeof namespace.st_ino);
    own_node = hash ? hash : 1;
}

uint64_t collx_shm_node(void)
{
    static pthread_once_t found = PTHREAD_ONCE_INIT;

    /* Eight system calls, a fifth of a setup in memory that was there. */
    pthread_once(&found, find_own_node);
    return own_node;
}

static int map(int fd, size_t size, void **base)
{
    /* Page by page, as it is used: few programs ever use all of it, and filling it takes longer
     * than all the rest of a setup. */
    void *address = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (address == MAP_FAILED)
        return -errno;
    /* A child that the program forks has no part in our collectives, and would only keep the
     * memory alive. */
    madvise(address, size, MADV_DONTFORK);
    *base = address;
    return 0;
}

int collx_shm_create(size_t size, void **base, int *fd)
{
    struct rlimit allowed;
    int error = 0;

    *fd = -1;
    /* Going past RLIMIT_FSIZE would not just fail: it raises SIGXFSZ, which kills. */
    if (!getrlimit(RLIMIT_FSIZE, &allowed) && size > allowed.rlim_cur)
        return -EFBIG;
    *fd = collx_fd_own(memfd_create("collx", MFD_CLOEXEC));
    if (*fd < 0)
        return -errno;
    if (ftruncate(*fd, (off_t)size))
        error = -errno;
    if (!error)
        error = map(*fd, size, base);
    if (error) {
        close(*fd);
        *fd = -1;
    }
    return error;
}

uintptr_t collx_page_up(uintptr_t bytes)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

    return (bytes + page - 1) / page * page;
}

void collx_shm_place(void *start, size_t bytes, int numa)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t first = ((uintptr_t)start + page - 1) & ~(page - 1);
    uintptr_t end = ((uintptr_t)start + bytes) & ~(page - 1);
    unsigned long nodes[NUMA_NODES / NODE_BITS] = {0};
    int keep = errno;

    if (numa < 0 || numa >= NUMA_NODES || first >= end)
        return;
    nodes[numa / NODE_BITS] = 1ul << numa % NODE_BITS;
    /* Of a file the policy belongs to the file's pages, not to this mapping alone, so it holds for
     * collx_shm_allocate(). */
    syscall(SYS_mbind, first, end - first, MPOL_PREFERRED, nodes, NUMA_NODES + 1ul, 0);
    errno = keep;
}

int collx_shm_allocate(int fd, size_t size)
{
    /* Before Linux 6.10 any signal interrupts it, and takes back what has been allocated.  A piece
     * is done before the next tick even of a profiler's timer, so repeating it comes to an end. */
    const size_t most = 1 << 20;

    for (size_t at = 0; at < size;) {
        size_t piece = size - at < most ? size - at : most;
        if (!fallocate(fd, 0, (off_t)at, (off_t)piece))
            at += piece;
        else if (errno != EINTR)
            return -errno;
    }
    return 0;
}

uint64_t collx_shm_cookie(void)
{
    uint64_t cookie;

    if (getrandom(&cookie, sizeof cookie, GRND_NONBLOCK) < 0)
        cookie = collx_clock_ns();
    return cookie | 1;
}

struct collx_shm_address collx_shm_tell(int fd, uint64_t *cookie)
{
    *cookie = collx_shm_cookie();
    /* Of the thread: it may have descriptors of its own. */
    return (struct collx_shm_address){.pid = gettid(), .fd = fd, .cookie = *cookie};
}

void collx_shm_touch(void *start, size_t bytes)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t first = (uintptr_t)start & ~(page - 1);
    int keep = errno;

    madvise((void *)first, collx_page_up((uintptr_t)start + bytes) - first, MADV_POPULATE_WRITE);
    errno = keep;
}

int collx_shm_open(const struct collx_shm_address *address, size_t size, size_t cookie, void **base)
{
    char path[64];
    struct stat status;
    int error = 0;

    snprintf(path, sizeof path, "/proc/%d/fd/%d", address->pid, address->fd);
    int own = collx_fd_own(open(path, O_RDWR | O_CLOEXEC));
    if (own < 0)
        return -errno;
    if (fstat(own, &status))
        error = -errno;
    else if ((size_t)status.st_size != size)
        error = -ESTALE;
    if (!error)
        error = map(own, size, base);
    close(own);
    if (!error && *(uint64_t *)((char *)*base + cookie) != address->cookie) {
        collx_shm_close(*base, size);
        *base = NULL;
        error = -ESTALE;
    }
    return error;
}

const char *collx_shm_advice(int error)
{
    switch (error) {
    case EAGAIN:
        return "Raise the limit on locked memory (ulimit -l), since the program locks all that it "
               "gets (mlockall)";
    case EACCES:
    case ENOENT:
    case ESTALE:
        return "They must see each other in /proc";
    case EFBIG:
        return "The limit on the size of files (ulimit -f) holds for shared memory, too";
    case EMFILE:
        return "Raise the limit on open files (ulimit -n)";
    case ENFILE:
        return "The node has too many files open (sysctl fs.file-max)";
    case ENOMEM:
    case ENOSPC:
        return "The node or a limit of the job (its cgroup, ulimit -v) leaves no memory for that: "
               "give it more";
    default:
        return "The kernel, or a filter on its calls (seccomp), must allow memfd_create and "
               "fallocate";
    }
}

void collx_shm_release(void *base, size_t size)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    int keep = errno;

    if (size > page)
        madvise((char *)base + page, size - page, MADV_REMOVE);
    errno = keep;
}

void collx_shm_close(void *base, size_t size)
{
    if (base)
        munmap(base, size);
}
