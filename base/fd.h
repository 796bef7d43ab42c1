/* File descriptors that are ours, in a program that is not. */
#ifndef COLLX_FD_H
#define COLLX_FD_H

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* `fd`, which has just been opened to be written to, or the same under another number: not one of
 * an input or output that the program has closed.  Whatever its threads, or the libraries that it
 * uses, print would be written there.  Negative, with errno, if it was, or if there is none. */
static inline int collx_fd_own(int fd)
{
    if (fd < 0 || fd > STDERR_FILENO)
        return fd;
    int own = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1), error = errno;
    close(fd);
    errno = error;
    return own;
}

#endif
