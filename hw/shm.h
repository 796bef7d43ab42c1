/* Memory that the ranks of a node share.
 *
 * The segment never has a name: it is a memfd that the peers open through /proc/PID/fd.  So a job
 * that is killed at any moment leaves nothing behind, and a small or full /dev/shm (containers
 * have 64 MiB) is no obstacle.
 */
#ifndef COLLX_SHM_H
#define COLLX_SHM_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

/* A piece of shared memory belongs to one writer: two lines, since hardware fetches them in pairs.
 */
#define COLLX_LINE 128

/* Which node this process is on, as far as sharing memory goes: equal for processes that see each
 * other in /proc.  Never 0. */
uint64_t collx_shm_node(void);

/* Where a segment is, for the processes of its node. */
struct collx_shm_address {
    int32_t pid, fd;
    uint64_t cookie; /* stands in it; never 0, which is what unused memory holds */
};
static_assert(sizeof(struct collx_shm_address) == 16, "it travels as bytes");

/* A new segment of `size` bytes, zeroed, mapped, but without memory yet.  *fd stays open until
 * every peer has opened the segment; close() it then.  0 or -errno; -EFBIG: more than this
 * process's limit on the size of files; then *fd is -1. */
int collx_shm_create(size_t size, void **base, int *fd);

/* `bytes` (a size or an address) rounded up to whole pages. */
uintptr_t collx_page_up(uintptr_t bytes);

/* The same to whole lines, of COLLX_LINE bytes. */
static inline uintptr_t collx_line_up(uintptr_t bytes)
{
    return (bytes + COLLX_LINE - 1) / COLLX_LINE * COLLX_LINE;
}

/* Before its memory is allocated: this part of a segment shall lie on that NUMA node, by the
 * kernel's number, if there is room.  Whole pages alone can; the rest of the part stays where its
 * neighbours are.  What the kernel does not know or allow is passed over. */
void collx_shm_place(void *start, size_t bytes, int numa);

/* Allocate the memory of a new segment (don't hope: a lack of it would be SIGBUS later).  0 or
 * -errno; the segment is still to be closed then. */
int collx_shm_allocate(int fd, size_t size);

/* A number that no other segment has; never 0. */
uint64_t collx_shm_cookie(void);

/* The address of a segment that has its memory; `cookie` is a place in it that is kept for this. */
struct collx_shm_address collx_shm_tell(int fd, uint64_t *cookie);

/* This part of a segment that has its memory will be used soon: map its pages now, all at once, not
 * each when it is first touched.  A kernel that cannot do that passes it over. */
void collx_shm_touch(void *start, size_t bytes);

/* The segment at that address, with its cookie at that offset.  0 or -errno: -EACCES where this
 * process may not look into the other's /proc, -ENOENT where it cannot see it, -ESTALE if another
 * one is there: a number may have been reused, or mean another process here. */
int collx_shm_open(const struct collx_shm_address *address, size_t size, size_t cookie,
                   void **base);

/* What a user can do where any of the above has failed with this errno, which is positive: a
 * sentence without its full stop, for the end of a message. */
const char *collx_shm_advice(int error);

/* Free the memory of a segment, but for its first page, though other processes have it mapped, too:
 * nobody may use more than that page any more.  A kernel that cannot do that frees it when all have
 * closed it. */
void collx_shm_release(void *base, size_t size);

/* NULL is fine. */
void collx_shm_close(void *base, size_t size);

#endif
