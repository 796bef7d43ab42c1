/* The wires of one node of a board that a process of this machine emulates: collx-hwemu. */
#include "hw/emulator.h"
#include "hw/wires.h"

#include "base/clock.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    PATIENCE_MS = 10000, /* for a board that is slow */
    LOOK_MS = 50,        /* between two looks whether it runs at all */
};

struct collx_port {
    struct collx_wire_spec spec;
    struct emulator_file *file;
    struct emulator_wire *out, *in;
    uint32_t seen; /* what get() saw last, raw */
    size_t bytes;
    int fd;
};

static void emu_close(struct collx_port *port)
{
    if (!port)
        return;
    if (port->file)
        munmap(port->file, port->bytes);
    if (port->fd >= 0)
        close(port->fd);
    free(port);
}

/* The board lets go of its lock when it ends, however it ends. */
static bool is_running(int fd)
{
    struct flock lock = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = EMULATOR_ALIVE, .l_len = 1};

    return !fcntl(fd, F_OFD_GETLK, &lock) && lock.l_type != F_UNLCK;
}

static int attach(struct collx_port *port, char *why, size_t size)
{
    const struct collx_wire_spec *spec = &port->spec;
    struct stat status;

    port->fd = collx_fd_own(open(spec->device, O_RDWR | O_CLOEXEC));
    if (port->fd < 0 || fstat(port->fd, &status)) {
        int error = -errno;
        snprintf(why, size, "cannot open %s: %s; collx-hwemu-single or -channels makes it",
                 spec->device, strerror(-error));
        return error;
    }
    port->bytes = (size_t)status.st_size;
    void *map = port->bytes < sizeof *port->file
                    ? MAP_FAILED
                    : mmap(NULL, port->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, port->fd, 0);
    port->file = map == MAP_FAILED ? NULL : map;
    /* The acquire is the partner of the emulator's last store to a file that it makes: without it
     * the fields below might not be there yet. */
    if (!port->file || __atomic_load_n(&port->file->magic, __ATOMIC_ACQUIRE) != EMULATOR_MAGIC ||
        port->bytes < emulator_bytes(port->file->nodes, port->file->outs, port->file->ins)) {
        snprintf(why, size, "%s is not the file of an emulated board", spec->device);
        return -EINVAL;
    }
    if (!is_running(port->fd)) {
        snprintf(why, size, "the board of %s does not run; start its collx-hwemu again",
                 spec->device);
        return -ENXIO;
    }
    if (spec->node >= port->file->nodes || spec->channels != port->file->channels) {
        snprintf(why, size, "node=%u,channels=%u: the board of %s has %u nodes and channels=%u",
                 spec->node, spec->channels, spec->device, port->file->nodes, port->file->channels);
        return -EINVAL;
    }
    return 0;
}

static int emu_open(struct collx_port **port, const struct collx_wire_spec *spec, char *why,
                    size_t size)
{
    struct collx_port *new = malloc(sizeof *new);

    if (!new)
        return -ENOMEM;
    *new = (struct collx_port){.spec = *spec, .fd = -1};
    int error = attach(new, why, size);
    if (error) {
        emu_close(new);
        return error;
    }
    uint32_t per_node = new->file->outs + new->file->ins;
    new->out = new->file->wires + (size_t)spec->node *per_node;
    new->in = new->out + new->file->outs;
    *port = new;
    return 0;
}

static long futex(uint32_t *word, int operation, uint32_t value, const struct timespec *timeout)
{
    return syscall(SYS_futex, word, operation, value, timeout, NULL, 0);
}

static int emu_set(struct collx_port *port, uint32_t mask, uint32_t levels)
{
    for (unsigned i = 0; i < port->spec.outs; i++)
        if (mask >> i & 1)
            /* Releases what this node has stored to the board's load of the level, which may take
             * it because another node rings: without it nodes that are released after this one has
             * arrived could miss that. */
            __atomic_store_n(&port->out[port->spec.out[i]].level, levels >> i & 1,
                             __ATOMIC_RELEASE);
    /* Releases the levels to the board's load of the ring, which else might take old ones.  In one
     * order with the load of `asleep`, as the board's two are: else it might sleep with nobody to
     * wake it. */
    __atomic_fetch_add(&port->file->ring, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&port->file->asleep, __ATOMIC_SEQ_CST))
        futex(&port->file->ring, FUTEX_WAKE, 1, NULL);
    return 0;
}

static int emu_get(struct collx_port *port, uint32_t *levels)
{
    *levels = 0;
    for (unsigned i = 0; i < port->spec.ins; i++)
        /* The partner is the board's release: what other nodes stored before they arrived is seen
         * by who is released, as it would be with a barrier in memory. */
        *levels |= __atomic_load_n(&port->in[port->spec.in[i]].level, __ATOMIC_ACQUIRE) << i;
    port->seen = *levels;
    return 0;
}

static int emu_settle(struct collx_port *port)
{
    uint32_t ring = __atomic_load_n(&port->file->ring, __ATOMIC_RELAXED);
    const uint64_t start = collx_clock_ns();
    uint64_t looked = start;

    /* The partner is the board's release after it has stored all levels. */
    while ((int32_t)(__atomic_load_n(&port->file->heard, __ATOMIC_ACQUIRE) - ring) < 0) {
        const uint64_t now = collx_clock_ns();
        if (now - looked > LOOK_MS * 1000000ull) {
            if (!is_running(port->fd))
                return -ENXIO;
            looked = now;
        }
        if (now - start > PATIENCE_MS * 1000000ull)
            return -ETIMEDOUT;
        sched_yield();
    }
    return 0;
}

/* One wire is enough to sleep on: the first that is seen to change wakes, and others are in time.
 */
static int emu_wait_edge(struct collx_port *port, int timeout_ms)
{
    struct emulator_wire *wire = &port->in[port->spec.in[0]];
    struct timespec timeout = {timeout_ms / 1000, timeout_ms % 1000 * 1000000l};

    /* In one order with the board's store of the level and its load of `sleepers`: else the board
     * might see nobody while the kernel still sees the old level. */
    __atomic_fetch_add(&wire->sleepers, 1, __ATOMIC_SEQ_CST);
    futex(&wire->level, FUTEX_WAIT, port->seen & 1, &timeout);
    __atomic_fetch_sub(&wire->sleepers, 1, __ATOMIC_RELAXED);
    return 0;
}

static int emu_lock(struct collx_port *port, int *fd, int64_t *start)
{
    *fd = port->fd;
    *start = EMULATOR_LOCKS + (int64_t)port->spec.node * 64;
    return 0;
}

const struct collx_wire_ops collx_wire_emu = {
    .name = "emu",
    .help = "A board that collx-hwemu emulates on this machine: the device is its file, and node= "
            "says which node this is.",
    .flags = COLLX_WIRES_SHARED | COLLX_WIRES_NUMBERED,
    .open = emu_open,
    .set = emu_set,
    .get = emu_get,
    .settle = emu_settle,
    .wait_edge = emu_wait_edge,
    .lock = emu_lock,
    .close = emu_close,
};
