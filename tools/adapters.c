/* The MPI adapters that lie beside libcollx.so. */
#include "tools/tools.h"

#include "base/mpi_libraries.h"
#include "hw/place.h"

#include <dirent.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *collx_library_folder(void)
{
    static const char *const beside[] = {".", COLLX_BIN_TO_LIB};
    static char folder[PATH_MAX];
    char own[PATH_MAX], library[PATH_MAX + 256];
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);

    own[length > 0 ? length : 0] = '\0';
    if (length > 0)
        *strrchr(own, '/') = '\0';
    for (size_t i = 0; i < sizeof beside / sizeof *beside; i++) {
        snprintf(library, sizeof library, "%s/%s/libcollx.so", own, beside[i]);
        if (realpath(library, folder)) {
            *strrchr(folder, '/') = '\0';
            return folder;
        }
    }
    return COLLX_LIBDIR;
}

static bool can_load(const char *path)
{
    void *handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL);

    if (handle)
        dlclose(handle);
    return handle;
}

static void print_adapter(const char *path)
{
    const char *file = strrchr(path, '/') + 1;
    char needs[256] = "", here[256] = "";

    for (unsigned i = 0; i < COLLX_MPI_LIBRARIES; i++) {
        const char *library = collx_mpi_libraries[i].library;

        if (strcmp(collx_mpi_libraries[i].adapter, file) != 0)
            continue;
        size_t length = strlen(needs);
        snprintf(needs + length, sizeof needs - length, "%s%s", length ? " or " : "", library);
        length = strlen(here);
        if (can_load(library))
            snprintf(here + length, sizeof here - length, "%s%s", length ? " and " : "", library);
    }
    if (*needs && !*here)
        printf("  %s: needs %s, which this machine does not have\n", file, needs);
    else if (!can_load(path))
        printf("  %s: cannot be loaded: %s\n", file, dlerror());
    else
        printf("  %s: needs %s; here: %s\n", file, *needs ? needs : "nothing",
               *here ? here : "yes");
}

static int is_adapter(const struct dirent *entry)
{
    static const char begin[] = "libcollx-", end[] = ".so";
    /* These lie there as well, and are for every MPI. */
    static const char *const others[] = {"libcollx-group.so", "libcollx-policy.so",
                                         COLLX_TOPOLOGY_LIBRARY, "libcollx-trace.so"};
    const char *name = entry->d_name;
    const size_t length = strlen(name);
    bool is = length > sizeof begin + sizeof end && !strncmp(name, begin, sizeof begin - 1) &&
              !strcmp(name + length - (sizeof end - 1), end);

    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        is = is && strcmp(name, others[i]) != 0;
    return is;
}

void collx_print_adapters(void)
{
    const char *folder = collx_library_folder();
    struct dirent **found = NULL;
    const int count = scandir(folder, &found, is_adapter, alphasort);

    printf("MPI adapters in %s\n", folder);
    for (int i = 0; i < count; i++) {
        char path[PATH_MAX + 256];
        snprintf(path, sizeof path, "%s/%s", folder, found[i]->d_name);
        print_adapter(path);
        free(found[i]);
    }
    free(found);
    if (count <= 0)
        printf("  none; programs run as if collx were not there.  Install an MPI library with its\n"
               "  headers and build collx again\n");
}
