#include "hw/parport.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
    char path[64];
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};

    snprintf(path, sizeof path, "/run/lock/collx-port-%#x", address);
    int fd = collx_fd_own(open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (fd < 0) {
        int error = -errno;
        snprintf(why, size, "cannot make %s, which keeps others off the port: %s", path,
                 strerror(-error));
        return error;
    }
    if (fcntl(fd, F_OFD_SETLK, &lock)) {
        close(fd);
        snprintf(why, size, "the port at %#x is in use by another process; `fuser %s` says which",
                 address, path);
        return -EBUSY;
    }
    return fd;
}
