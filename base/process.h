/* What the kernel tells of a process, and of this one. */
#ifndef COLLX_PROCESS_H
#define COLLX_PROCESS_H

#include "base/file.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>

/* getpid(), which is a system call: here only the first time, also in a child that has been forked.
 * In a process that shares its memory with another one, as a child of vfork() does, either's. */
pid_t collx_process_own(void);

/* Its state ('R', 'S', … 'Z') and its parent.  False: nobody tells. */
static inline bool collx_process_find(pid_t process, char *state, int *parent)
{
    char path[64], text[1024];

    snprintf(path, sizeof path, "/proc/%d/stat", (int)process);
    collx_file_text(path, text, sizeof text);
    /* "pid (name) state parent …"; a name may hold anything. */
    const char *after = strrchr(text, ')');
    return after && sscanf(after, ") %c %d", state, parent) == 2;
}

/* It has, also if whoever started it has not taken notice yet.  errno stays. */
static inline bool collx_process_has_ended(pid_t process)
{
    const int keep = errno;
    char state = 'R';
    int parent;

    const bool gone = kill(process, 0) && errno == ESRCH;
    collx_process_find(process, &state, &parent);
    errno = keep;
    return gone || state == 'Z' || state == 'X';
}

#endif
