#include "hw/cma.h"

#include <errno.h>
#include <sys/uio.h>

typedef ssize_t transfer(pid_t, const struct iovec *, unsigned long, const struct iovec *,
                         unsigned long, unsigned long);

static int copy(transfer *move, int pid, char *own, uint64_t address, size_t bytes)
{
    int keep = errno, error = 0;

    /* One call moves 2 GiB at most, and less where it meets a page that it cannot reach. */
    while (bytes && !error) {
        struct iovec here = {own, bytes}, there = {(void *)(uintptr_t)address, bytes};
        ssize_t moved = move(pid, &here, 1, &there, 1, 0);
        if (moved > 0) {
            own += moved;
            address += (uint64_t)moved;
            bytes -= (size_t)moved;
        } else if (moved == 0) {
            error = -EFAULT;
        } else if (errno != EINTR) {
            error = -errno;
        }
    }
    errno = keep;
    return error;
}

int collx_cma_read(int pid, void *to, uint64_t address, size_t bytes)
{
    return copy(process_vm_readv, pid, to, address, bytes);
}

int collx_cma_write(int pid, uint64_t address, const void *from, size_t bytes)
{
    return copy(process_vm_writev, pid, (char *)(uintptr_t)from, address, bytes);
}
