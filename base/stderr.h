/* Writing to a program's stderr, which may be a pipe that nobody reads any more: to write there
 * raises SIGPIPE, which ends a program that has not foreseen it, as it need not of what it has not
 * written itself. */
#ifndef COLLX_STDERR_H
#define COLLX_STDERR_H

#include <errno.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

/* In one write, so that the lines of many ranks do not mix.  Nothing can be done if it fails.
 * Keeps errno. */
static inline void collx_stderr_write(const char *text, size_t length)
{
    const struct timespec now = {0, 0};
    const int keep = errno;
    ssize_t written;
    sigset_t ours, pending, blocked;

    sigemptyset(&ours);
    sigaddset(&ours, SIGPIPE);
    sigpending(&pending);
    pthread_sigmask(SIG_BLOCK, &ours, &blocked);
    do
        written = write(STDERR_FILENO, text, length);
    while (written < 0 && errno == EINTR);
    /* The signal goes to the thread that writes, and is the first that it takes. */
    if (written < 0 && errno == EPIPE) {
        const int was_pending = sigismember(&pending, SIGPIPE);
        while (sigtimedwait(&ours, NULL, &now) < 0 && errno == EINTR)
            ;
        /* It may have been pending for this thread: two are one. */
        sigpending(&pending);
        if (was_pending && !sigismember(&pending, SIGPIPE))
            raise(SIGPIPE);
    }
    pthread_sigmask(SIG_SETMASK, &blocked, NULL);
    errno = keep;
}

#endif
