#include "hw/parport.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { REGISTERS = 3 }; /* data, status, control: a byte each */

const struct collx_wire_pin collx_parport_pins[] = {
    {"d0", 0, true, false},      {"d1", 1, true, false},        {"d2", 2, true, false},
    {"d3", 3, true, false},      {"d4", 4, true, false},        {"d5", 5, true, false},
    {"d6", 6, true, false},      {"d7", 7, true, false},        {"error", 3, false, false},
    {"select", 4, false, false}, {"paperout", 5, false, false}, {"ack", 6, false, false},
    {"busy", 7, false, true},    {NULL, 0, false, false},
};

int collx_parport_address(const char *text, unsigned *address, char *why, size_t size)
{
    char *end;
    unsigned long value = strtoul(text, &end, 0);

    *address = (unsigned)value;
    if (end != text && !*end && value >= 0x100 && value <= 0xfff8)
        return 0;
    snprintf(why, size,
             "'%s' is not the address of a parallel port; 0x378, 0x278 and 0x3bc are usual, and "
             "/proc/ioports says where parport0 is",
             text);
    return -EINVAL;
}

int collx_parport_take(unsigned address, char *why, size_t size)
{
    struct flock lock = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = address, .l_len = REGISTERS};

    /* The lock is on the ports themselves.  A file for it would have to lie where nobody but those
     * who may use them can make or lock it, or anybody could keep them off. */
    int fd = collx_fd_own(open("/dev/port", O_RDWR | O_CLOEXEC));
    if (fd < 0) {
        int error = -errno;
        snprintf(why, size,
                 "cannot open /dev/port (%s), where ports are locked: it is for root "
                 "(CAP_SYS_RAWIO), and x86's; ppdev:/dev/parport0 does without",
                 strerror(-error));
        return error;
    }
    if (fcntl(fd, F_OFD_SETLK, &lock)) {
        close(fd);
        snprintf(why, size,
                 "the port at %#x is in use by another process; `fuser /dev/port` says which",
                 address);
        return -EBUSY;
    }
    return fd;
}
