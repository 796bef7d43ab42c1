/* A parallel port through /dev/port, for root where port instructions are not to be had. */
#include "hw/parport.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct collx_port {
    struct collx_wire_spec spec;
    unsigned address;
    int fd;
    uint8_t data; /* as it was written last */
};

static int one(ssize_t done)
{
    return done == 1 ? 0 : done < 0 ? -errno : -EIO;
}

static void devport_close(struct collx_port *port)
{
    if (!port)
        return;
    if (port->fd >= 0)
        close(port->fd);
    free(port);
}

static int devport_open(struct collx_port **port, const struct collx_wire_spec *spec, char *why,
                        size_t size)
{
    struct collx_port *new = malloc(sizeof *new);
    uint8_t control;

    if (!new)
        return -ENOMEM;
    *new = (struct collx_port){.spec = *spec, .fd = -1};
    int error = collx_parport_address(spec->device, &new->address, why, size);
    if (!error) {
        new->fd = collx_parport_take(new->address, why, size);
        error = new->fd < 0 ? new->fd : 0;
    }
    if (!error) {
        error = one(pread(new->fd, &control, 1, (off_t) new->address + 2));
        control &= 0xcf; /* data lines that drive, no interrupt */
        if (!error)
            error = one(pwrite(new->fd, &control, 1, (off_t) new->address + 2));
        if (!error)
            error = one(pread(new->fd, &new->data, 1, (off_t) new->address));
        if (error)
            snprintf(why, size, "cannot use the port at %#x by /dev/port: %s", new->address,
                     strerror(-error));
    }
    if (error) {
        devport_close(new);
        return error;
    }
    *port = new;
    return 0;
}

static int devport_set(struct collx_port *port, uint32_t mask, uint32_t levels)
{
    port->data = (uint8_t)collx_wires_spread(&port->spec, port->data, mask, levels);
    return one(pwrite(port->fd, &port->data, 1, (off_t)port->address));
}

static int devport_get(struct collx_port *port, uint32_t *levels)
{
    uint8_t status = 0;
    int error = one(pread(port->fd, &status, 1, (off_t)port->address + 1));

    *levels = collx_wires_gather(&port->spec, status);
    return error;
}

const struct collx_wire_ops collx_wire_devport = {
    .name = "devport",
    .help = "A parallel port, by /dev/port: root; the device is its address.",
    .device = "0x378",
    COLLX_PARPORT_WIRES,
    .open = devport_open,
    .set = devport_set,
    .get = devport_get,
    .close = devport_close,
};
