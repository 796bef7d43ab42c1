/* How many descriptors this process has: what shows a leak of them. */
#ifndef COLLX_TESTS_OPEN_FILES_H
#define COLLX_TESTS_OPEN_FILES_H

#include "tests/programs/check.h"

#include <dirent.h>

static inline long open_files(void)
{
    long files = 0;
    DIR *folder = opendir("/proc/self/fd");

    CHECK(folder);
    while (readdir(folder))
        files++;
    closedir(folder);
    return files - 3; /* itself, and the names of the folder and of the one above it */
}

#endif
