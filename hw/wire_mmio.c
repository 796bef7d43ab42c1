/* Registers of a card, mapped: the first page of a PCI resource, or of a UIO device. */
#include "hw/wires.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct collx_port {
    struct collx_wire_spec spec;
    volatile uint32_t *out;
    volatile const uint32_t *in;
    void *page;
    size_t bytes;
    int fd;
    uint32_t data; /* as it was written last */
};

static void mmio_close(struct collx_port *port)
{
    if (!port)
        return;
    if (port->page != MAP_FAILED)
        munmap(port->page, port->bytes);
    if (port->fd >= 0)
        close(port->fd);
    free(port);
}

static int check(const struct collx_wire_spec *spec, size_t bytes, char *why, size_t size)
{
    bool good = spec->out_register % 4 == 0 && spec->in_register % 4 == 0 &&
                spec->out_register < bytes && spec->in_register < bytes;

    for (unsigned i = 0; i < spec->outs; i++)
        good &= spec->out[i] < 32;
    for (unsigned i = 0; i < spec->ins; i++)
        good &= spec->in[i] < 32;
    if (good)
        return 0;
    snprintf(why, size,
             "registers=OUT/IN are multiples of 4 below %zu, and pins the bits 0 to 31 in them",
             bytes);
    return -EINVAL;
}

static int mmio_open(struct collx_port **port, const struct collx_wire_spec *spec, char *why,
                     size_t size)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
    struct collx_port *new = malloc(sizeof *new);
    struct stat status;

    if (!new)
        return -ENOMEM;
    *new = (struct collx_port){
        .spec = *spec, .page = MAP_FAILED, .bytes = (size_t)sysconf(_SC_PAGESIZE), .fd = -1};
    int error = check(spec, new->bytes, why, size);
    if (!error && (new->fd = collx_fd_own(open(spec->device, O_RDWR | O_SYNC | O_CLOEXEC))) < 0) {
        error = -errno;
        snprintf(why, size,
                 "cannot open %s: %s; `lspci -v` finds the card, and a udev rule gives a group the "
                 "right to it",
                 spec->device, strerror(-error));
    }
    if (!error && !fstat(new->fd, &status) && S_ISREG(status.st_mode) && !status.st_size) {
        error = -EINVAL; /* it can be mapped, but not touched */
        snprintf(why, size, "%s is empty; `lspci -v` finds the card", spec->device);
    }
    if (!error && fcntl(new->fd, F_OFD_SETLK, &lock)) {
        error = -EBUSY;
        snprintf(why, size, "%s is in use by another process; `fuser %s` says which", spec->device,
                 spec->device);
    }
    if (!error) {
        new->page = mmap(NULL, new->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, new->fd, 0);
        error = new->page == MAP_FAILED ? -errno : 0;
        if (error)
            snprintf(why, size,
                     "cannot map %s: %s; it has to be a memory resource, not one of ports",
                     spec->device, strerror(-error));
    }
    if (error) {
        mmio_close(new);
        return error;
    }
    new->out = (volatile uint32_t *)((char *)new->page + spec->out_register);
    new->in = (volatile const uint32_t *)((char *)new->page + spec->in_register);
    new->data = *new->out;
    *port = new;
    return 0;
}

static int mmio_set(struct collx_port *port, uint32_t mask, uint32_t levels)
{
    port->data = collx_wires_spread(&port->spec, port->data, mask, levels);
    *port->out = port->data;
    return 0;
}

static int mmio_get(struct collx_port *port, uint32_t *levels)
{
    *levels = collx_wires_gather(&port->spec, *port->in);
    return 0;
}

/* A write may wait in a bridge; a read from the card cannot pass it. */
static int mmio_settle(struct collx_port *port)
{
    for (int i = 0; i < 2; i++)
        (void)*port->in;
    return 0;
}

const struct collx_wire_ops collx_wire_mmio = {
    .name = "mmio",
    .help = "Two registers of a card: a resourceN of a PCI device, or /dev/uioN; registers=OUT/IN "
            "says where, and pins are bits.",
    .out = "0/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15",
    .in = "0/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15",
    .config_out = "30/31",
    .config_in = "31",
    .open = mmio_open,
    .set = mmio_set,
    .get = mmio_get,
    .settle = mmio_settle,
    .close = mmio_close,
};
