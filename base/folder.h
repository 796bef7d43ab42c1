/* Where a library lies, to find what belongs beside it. */
#ifndef COLLX_FOLDER_H
#define COLLX_FOLDER_H

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>

/* The folder that the library with `symbol` in it was loaded from; "." if nobody knows, or it is
 * too long.  Not by the library's name, which may be relative to a folder that the program has left
 * since. */
static inline void collx_folder_of(const void *symbol, char *folder, size_t size)
{
    char origin[2 * PATH_MAX] = "."; /* of a relative name and what it is relative to */
    struct link_map *library;
    Dl_info info;

    if (dladdr1(symbol, &info, (void **)&library, RTLD_DL_LINKMAP))
        dlinfo(library, RTLD_DI_ORIGIN, origin);
    /* A path that is cut short leads elsewhere. */
    if ((size_t)snprintf(folder, size, "%s", origin) >= size)
        snprintf(folder, size, ".");
}

#endif
