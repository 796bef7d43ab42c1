/* A parallel port by the instructions of x86: the shortest way, and root's alone. */
#include "hw/parport.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__) || defined(__i386__)
#include <sys/io.h>

struct collx_port {
    struct collx_wire_spec spec;
    unsigned address;
    int lock;
    uint8_t data; /* as it was written last */
};

/* The kernel gives the right to a port to a thread, and to those that this one starts later; but a
 * communicator may be set up by one thread and used by another. */
static int permit(unsigned address)
{
    static _Thread_local unsigned permitted;

    if (permitted == address)
        return 0;
    if (ioperm(address, 3, 1))
        return -errno;
    permitted = address;
    return 0;
}

static int ioport_open(struct collx_port **port, const struct collx_wire_spec *spec, char *why,
                       size_t size)
{
    struct collx_port *new = malloc(sizeof *new);

    if (!new)
        return -ENOMEM;
    *new = (struct collx_port){.spec = *spec};
    int error = collx_parport_address(spec->device, &new->address, why, size);
    if (!error && (error = permit(new->address)))
        snprintf(why, size,
                 "no right to the ports from %#x (%s): that is for root (CAP_SYS_RAWIO); "
                 "ppdev:/dev/parport0 does without",
                 new->address, strerror(-error));
    if (!error) {
        new->lock = collx_parport_take(new->address, why, size);
        error = new->lock < 0 ? new->lock : 0;
    }
    if (error) {
        free(new);
        return error;
    }
    /* Data lines that drive, no interrupt. */
    outb(inb((unsigned short)(new->address + 2)) & 0xcf, (unsigned short)(new->address + 2));
    new->data = inb((unsigned short)new->address);
    *port = new;
    return 0;
}

static int ioport_set(struct collx_port *port, uint32_t mask, uint32_t levels)
{
    int error = permit(port->address);

    if (error)
        return error;
    port->data = (uint8_t)collx_wires_spread(&port->spec, port->data, mask, levels);
    outb(port->data, (unsigned short)port->address);
    return 0;
}

static int ioport_get(struct collx_port *port, uint32_t *levels)
{
    int error = permit(port->address);

    *levels = error ? 0 : collx_wires_gather(&port->spec, inb((unsigned short)(port->address + 1)));
    return error;
}

static void ioport_close(struct collx_port *port)
{
    if (!port)
        return;
    close(port->lock);
    free(port);
}
#else
static int ioport_open(struct collx_port **port, const struct collx_wire_spec *spec, char *why,
                       size_t size)
{
    (void)port;
    snprintf(why, size, "%s: port instructions are x86's; ppdev:/dev/parport0 works elsewhere",
             spec->device);
    return -ENOSYS;
}

#define ioport_set NULL
#define ioport_get NULL
#define ioport_close NULL
#endif

const struct collx_wire_ops collx_wire_ioport = {
    .name = "ioport",
    .help = "A parallel port, by port instructions: x86, root; the device is its address.",
    .device = "0x378",
    COLLX_PARPORT_WIRES,
    .open = ioport_open,
    .set = ioport_set,
    .get = ioport_get,
    .close = ioport_close,
};
