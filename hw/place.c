#include "hw/place.h"

#include "base/error.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int collx_place_find(const char *folder, const char *description, int rank,
                     struct collx_machine *machine, struct collx_place *place, char *why,
                     size_t size)
{
    int keep = errno, error = COLLX_EUNFIT;
    /* On the heap: who calls a collective may have a small stack. */
    char *path = NULL;

    *machine = (struct collx_machine){0};
    *place = COLLX_NOWHERE;
    if (asprintf(&path, "%s/" COLLX_TOPOLOGY_LIBRARY, folder) < 0) {
        snprintf(why, size, "out of memory");
        errno = keep;
        return -ENOMEM;
    }
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    collx_place_find_fn *find =
        library ? (collx_place_find_fn *)dlsym(library, COLLX_TOPOLOGY_FIND) : NULL;
    if (find) {
        error = find(description, rank, machine, place, why, size);
    } else if (access(path, F_OK)) {
        snprintf(why, size,
                 "there is no %s; collx is to be built where there is hwloc "
                 "(libhwloc-dev)",
                 path);
        error = -ENOENT;
    } else {
        snprintf(why, size, "cannot load what knows the machine's caches: %s. It needs libhwloc",
                 dlerror());
    }
    if (library)
        dlclose(library);
    free(path);
    errno = keep;
    return error;
}

int collx_places_first(const struct collx_place *places, int i, enum collx_place_key key)
{
    int first = 0;

    while (first < i && !collx_place_shared(&places[first], &places[i], key))
        first++;
    return first;
}

bool collx_places_next_numa(const struct collx_place *places, int count, int *numa)
{
    int32_t next = INT32_MAX;

    for (int i = 0; i < count; i++)
        if (places[i].numa > *numa && places[i].numa < next)
            next = places[i].numa;
    if (next < INT32_MAX)
        *numa = next;
    return next < INT32_MAX;
}

int collx_places_numa_nodes(const struct collx_place *places, int count)
{
    int nodes = 0, numa = -1;

    if (!places)
        return 1;
    for (int i = 0; i < count && !nodes; i++)
        nodes = places[i].numa < 0;
    while (collx_places_next_numa(places, count, &numa))
        nodes++;
    return nodes;
}
