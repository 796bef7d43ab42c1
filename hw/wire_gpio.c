/* Lines of a GPIO chip: a single-board computer's pins, or a card's. */
#include "hw/wires.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/gpio.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

struct collx_port {
    int out, in; /* descriptors of the lines, which the kernel gives to one process alone */
    uint32_t ins;
};

/* Ask for the lines of one direction; the descriptor, or -errno. */
static int request(int chip, const uint16_t *lines, unsigned count, uint64_t flags)
{
    struct gpio_v2_line_request lines_wanted = {.num_lines = count, .consumer = "collx"};

    for (unsigned i = 0; i < count; i++)
        lines_wanted.offsets[i] = lines[i];
    lines_wanted.config.flags = flags;
    if (ioctl(chip, GPIO_V2_GET_LINE_IOCTL, &lines_wanted))
        return -errno;
    int fd = collx_fd_own(lines_wanted.fd);
    return fd < 0 ? -errno : fd;
}

static void gpio_close(struct collx_port *port)
{
    if (!port)
        return;
    if (port->out >= 0)
        close(port->out);
    if (port->in >= 0)
        close(port->in);
    free(port);
}

static int gpio_open(struct collx_port **port, const struct collx_wire_spec *spec, char *why,
                     size_t size)
{
    struct collx_port *new = malloc(sizeof *new);

    if (!new)
        return -ENOMEM;
    *new = (struct collx_port){.out = -1, .in = -1, .ins = (1u << spec->ins) - 1};
    int chip = open(spec->device, O_RDWR | O_CLOEXEC);
    int error = chip < 0 ? -errno : 0;
    if (error)
        snprintf(why, size,
                 "cannot open %s: %s; `gpiodetect` lists the chips, and a udev rule gives "
                 "its group the right to them",
                 spec->device, strerror(-error));
    if (!error) {
        new->out = request(chip, spec->out, spec->outs, GPIO_V2_LINE_FLAG_OUTPUT);
        new->in = request(chip, spec->in, spec->ins,
                          GPIO_V2_LINE_FLAG_INPUT | GPIO_V2_LINE_FLAG_EDGE_RISING |
                              GPIO_V2_LINE_FLAG_EDGE_FALLING);
        /* Lines without an interrupt have no edges: gpio_wait_edge() sleeps for its time then. What
         * else is in the way is so again. */
        if (new->in < 0)
            new->in = request(chip, spec->in, spec->ins, GPIO_V2_LINE_FLAG_INPUT);
        error = new->out < 0 ? new->out : new->in < 0 ? new->in : 0;
        if (error)
            snprintf(why, size, "cannot have the lines of %s: %s; `gpioinfo` says who has them",
                     spec->device, strerror(-error));
    }
    if (chip >= 0)
        close(chip);
    if (error) {
        gpio_close(new);
        return error;
    }
    *port = new;
    return 0;
}

static int gpio_set(struct collx_port *port, uint32_t mask, uint32_t levels)
{
    struct gpio_v2_line_values values = {.bits = levels, .mask = mask};

    /* The kernel takes no write to no line.  A look at one takes as long. */
    if (!mask) {
        values.mask = 1;
        return ioctl(port->out, GPIO_V2_LINE_GET_VALUES_IOCTL, &values) ? -errno : 0;
    }
    return ioctl(port->out, GPIO_V2_LINE_SET_VALUES_IOCTL, &values) ? -errno : 0;
}

static int gpio_get(struct collx_port *port, uint32_t *levels)
{
    struct gpio_v2_line_values values = {.mask = port->ins};
    int error = ioctl(port->in, GPIO_V2_LINE_GET_VALUES_IOCTL, &values) ? -errno : 0;

    *levels = (uint32_t)values.bits;
    return error;
}

static int gpio_wait_edge(struct collx_port *port, int timeout_ms)
{
    struct pollfd wait = {.fd = port->in, .events = POLLIN};
    struct gpio_v2_line_event events[16];

    if (poll(&wait, 1, timeout_ms) < 0 && errno != EINTR)
        return -errno;
    if ((wait.revents & POLLIN) && read(port->in, events, sizeof events) < 0)
        return -errno;
    return 0;
}

const struct collx_wire_ops collx_wire_gpio = {
    .name = "gpio",
    .help = "Lines of a GPIO chip: out and in name their numbers.",
    .device = "/dev/gpiochip0",
    .open = gpio_open,
    .set = gpio_set,
    .get = gpio_get,
    .wait_edge = gpio_wait_edge,
    .close = gpio_close,
};
