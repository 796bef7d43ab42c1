/* Segments in memory that processes of a node share.  Nothing is ever lost, or late. */
#include "hw/segment.h"
#include "hw/shm.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SEG_SHM_KIND 0x6d68732d78636c63u /* "clcx-shm" */

/* Behind the segment, in a line of its own. */
#define COOKIE_BYTES COLLX_LINE

struct collx_net {
    uint64_t node;
};

struct collx_export {
    void *base;
    size_t bytes; /* with the cookie */
    int fd;
};

struct collx_remote {
    char *base;
    size_t bytes;
};

static size_t cookie_offset(size_t bytes)
{
    return collx_line_up(bytes);
}

static int shm_open_net(struct collx_net **net, struct collx_seg_caps *caps, char *why, size_t size)
{
    struct collx_net *new = malloc(sizeof *new);

    *net = new;
    if (!new) {
        snprintf(why, size, "out of memory");
        return -ENOMEM;
    }
    int keep = errno;
    new->node = collx_shm_node();
    errno = keep;
    /* A line costs about 100 ns to get from one core to another. */
    *caps = (struct collx_seg_caps){
        .line = COLLX_LINE,
        .flags = COLLX_SEG_NODE | COLLX_SEG_ORDERED | COLLX_SEG_WHOLE_LINES | COLLX_SEG_ONE_CHECK,
        .store_ns = 100,
    };
    return 0;
}

static void shm_unmake(struct collx_export *made)
{
    if (!made)
        return;
    collx_shm_close(made->base, made->bytes);
    if (made->fd >= 0)
        close(made->fd);
    free(made);
}

static int shm_make(struct collx_net *net, size_t bytes, struct collx_export **made, void **local,
                    struct collx_seg_address *address, char *why, size_t size)
{
    struct collx_export *new = calloc(1, sizeof *new);
    int keep = errno, error = new ? 0 : -ENOMEM;

    if (!error) {
        new->bytes = cookie_offset(bytes) + COOKIE_BYTES;
        error = collx_shm_create(new->bytes, &new->base, &new->fd);
    }
    if (!error)
        error = collx_shm_allocate(new->fd, new->bytes);
    if (error) {
        snprintf(why, size, "cannot share %zu bytes of memory: %s. %s", bytes, strerror(-error),
                 collx_shm_advice(-error));
        shm_unmake(new);
        new = NULL;
    } else {
        char *cookie = (char *)new->base + cookie_offset(bytes);
        struct collx_shm_address at = collx_shm_tell(new->fd, (uint64_t *)cookie);
        *local = new->base;
        *address = (struct collx_seg_address){{SEG_SHM_KIND, net->node}};
        memcpy(&address->word[2], &at, sizeof at);
    }
    *made = new;
    errno = keep;
    return error;
}

/* As long as the descriptor is open the program may close it, and then we would close a file of the
 * program's; and a child that it forks keeps the memory. */
static void shm_settle(struct collx_export *made)
{
    close(made->fd);
    made->fd = -1;
}

static int open_segment(struct collx_net *net, const struct collx_seg_address *address,
                        const struct collx_shm_address *at, size_t bytes, void **base)
{
    if (address->word[0] != SEG_SHM_KIND)
        return -EINVAL;
    if (address->word[1] != net->node)
        return -EHOSTUNREACH;
    return collx_shm_open(at, cookie_offset(bytes) + COOKIE_BYTES, cookie_offset(bytes), base);
}

static int shm_connect(struct collx_net *net, const struct collx_seg_address *address, size_t bytes,
                       struct collx_remote **remote, char *why, size_t size)
{
    struct collx_remote *new = calloc(1, sizeof *new);
    struct collx_shm_address at;
    int keep = errno, error = -ENOMEM;
    void *base = NULL;

    memcpy(&at, &address->word[2], sizeof at);
    if (new)
        error = open_segment(net, address, &at, bytes, &base);
    if (!error) {
        *new = (struct collx_remote){base, cookie_offset(bytes) + COOKIE_BYTES};
    } else {
        const char *reason = error == -EINVAL         ? "the address is not one of shm"
                             : error == -EHOSTUNREACH ? "its owner is on another node"
                             : error == -ESTALE       ? "it is gone, or of another size"
                             : error == -ENOENT       ? "it is gone, or its owner is"
                                                      : strerror(-error);
        snprintf(why, size, "cannot reach shared memory of process %" PRId32 ": %s", at.pid,
                 reason);
        free(new);
        new = NULL;
    }
    *remote = new;
    errno = keep;
    return error;
}

/* The release is the partner of collx_seg_read(): without it the owner could see the flag before
 * the data. */
static void shm_store(struct collx_remote *remote, size_t offset, uint32_t value)
{
    __atomic_store_n((uint32_t *)(remote->base + offset), value, __ATOMIC_RELEASE);
}

static void shm_copy(struct collx_remote *remote, size_t offset, const void *data, size_t bytes)
{
    const char *from = data;

    /* Line by line: each may end with a flag. */
    while (bytes) {
        size_t rest = COLLX_LINE - offset % COLLX_LINE, part = bytes < rest ? bytes : rest;
        uint32_t last;

        memcpy(remote->base + offset, from, part - sizeof last);
        memcpy(&last, from + part - sizeof last, sizeof last);
        shm_store(remote, offset + part - sizeof last, last);
        offset += part;
        from += part;
        bytes -= part;
    }
}

static int shm_check(struct collx_net *net, struct collx_remote *const *remotes, unsigned count,
                     uint8_t *state)
{
    (void)net, (void)remotes;
    memset(state, COLLX_SEG_ARRIVED, count);
    return 0;
}

static void shm_disconnect(struct collx_remote *remote)
{
    if (remote)
        collx_shm_close(remote->base, remote->bytes);
    free(remote);
}

static void shm_close_net(struct collx_net *net)
{
    free(net);
}

const struct collx_seg_ops collx_segment_shm = {
    .name = "shm",
    .open = shm_open_net,
    .make = shm_make,
    .connect = shm_connect,
    .settle = shm_settle,
    .store = shm_store,
    .copy = shm_copy,
    .check = shm_check,
    .disconnect = shm_disconnect,
    .unmake = shm_unmake,
    .close = shm_close_net,
};
