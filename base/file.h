/* Small files, such as the kernel makes up. */
#ifndef COLLX_FILE_H
#define COLLX_FILE_H

#include <fcntl.h>
#include <unistd.h>

/* The contents of a small file such as /proc has, as a text; empty if it cannot be read. */
static inline void collx_file_text(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? 0 : read(fd, text, size - 1);

    if (fd >= 0)
        close(fd);
    while (length > 0 && (text[length - 1] == '\n' || !text[length - 1]))
        length--;
    length = length > 0 ? length : 0;
    for (ssize_t i = 0; i < length; i++) /* the arguments of a command line end with NULs */
        text[i] = text[i] ? text[i] : ' ';
    text[length] = 0;
}

#endif
