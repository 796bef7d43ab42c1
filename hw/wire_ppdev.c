/* A parallel port through the kernel's ppdev: no root, for members of the group lp. */
#include "hw/parport.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/parport.h>
#include <linux/ppdev.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

struct collx_port {
    struct collx_wire_spec spec;
    int fd;
    uint8_t data; /* as it was written last */
};

static int cannot_open(const char *device, char *why, size_t size)
{
    int error = -errno;

    if (error == -ENOENT)
        snprintf(why, size,
                 "there is no %s; `modprobe -a parport_pc ppdev` makes it, if there is a port",
                 device);
    else if (error == -EACCES || error == -EPERM)
        snprintf(why, size,
                 "no right to %s; `usermod -aG lp USER` gives it, at the next login, and in a "
                 "container the device has to be handed in",
                 device);
    else
        snprintf(why, size, "cannot open %s: %s", device, strerror(-error));
    return error;
}

/* PPCLAIM answers ENXIO if somebody else is on the port, and it was to be exclusive. */
static int cannot_claim(const char *device, char *why, size_t size)
{
    int error = -errno;

    if (error == -ENOTTY)
        snprintf(why, size, "%s is not a parallel port of ppdev's", device);
    else
        snprintf(
            why, size,
            "%s is in use, or cannot be had alone (%s): by another job (`fuser %s`), or by the "
            "printer driver (`rmmod lp`)",
            device, strerror(-error), device);
    return error == -ENXIO || error == -EAGAIN ? -EBUSY : error;
}

static void ppdev_close(struct collx_port *port)
{
    if (!port)
        return;
    ioctl(port->fd, PPRELEASE);
    close(port->fd);
    free(port);
}

static int ppdev_open(struct collx_port **port, const struct collx_wire_spec *spec, char *why,
                      size_t size)
{
    int output = 0;
    struct collx_port *new = malloc(sizeof *new);

    if (!new)
        return -ENOMEM;
    *new = (struct collx_port){.spec = *spec,
                               .fd = collx_fd_own(open(spec->device, O_RDWR | O_CLOEXEC))};
    if (new->fd < 0) {
        int error = cannot_open(spec->device, why, size);
        free(new);
        return error;
    }
    if (ioctl(new->fd, PPEXCL) || ioctl(new->fd, PPCLAIM)) {
        int error = cannot_claim(spec->device, why, size);
        close(new->fd);
        free(new);
        return error;
    }
    if (ioctl(new->fd, PPDATADIR, &output) || ioctl(new->fd, PPRDATA, &new->data)) {
        int error = -errno;
        snprintf(why, size, "%s cannot drive its data lines: %s", spec->device, strerror(-error));
        ppdev_close(new);
        return error;
    }
    *port = new;
    return 0;
}

static int ppdev_set(struct collx_port *port, uint32_t mask, uint32_t levels)
{
    port->data = (uint8_t)collx_wires_spread(&port->spec, port->data, mask, levels);
    return ioctl(port->fd, PPWDATA, &port->data) ? -errno : 0;
}

static int ppdev_get(struct collx_port *port, uint32_t *levels)
{
    uint8_t status = 0;
    int error = ioctl(port->fd, PPRSTATUS, &status) ? -errno : 0;

    *levels = collx_wires_gather(&port->spec, status);
    return error;
}

/* PPCLAIM has enabled the port's interrupt, if it has one, which comes with one of ACK's two edges.
 */
static int ppdev_wait_edge(struct collx_port *port, int timeout_ms)
{
    struct pollfd wait = {.fd = port->fd, .events = POLLIN};
    int count;

    if (poll(&wait, 1, timeout_ms) < 0 && errno != EINTR)
        return -errno;
    if (wait.revents & POLLIN)
        ioctl(port->fd, PPCLRIRQ, &count);
    return 0;
}

const struct collx_wire_ops collx_wire_ppdev = {
    .name = "ppdev",
    .help = "A parallel port, by the kernel's ppdev: for members of the group lp.",
    .device = "/dev/parport0",
    COLLX_PARPORT_WIRES,
    .open = ppdev_open,
    .set = ppdev_set,
    .get = ppdev_get,
    .wait_edge = ppdev_wait_edge,
    .close = ppdev_close,
};
