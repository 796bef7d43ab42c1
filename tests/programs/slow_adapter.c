/* An adapter that is long in coming, and then hands over to the one that COLLX_TEST_ADAPTER names.
 */
#include "base/door.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

__attribute__((visibility("default"))) collx_adapter_open_fn collx_adapter_open;

int collx_adapter_open(const struct collx_door *door, char *why, size_t size)
{
    void *handle = dlopen(getenv("COLLX_TEST_ADAPTER"), RTLD_NOW | RTLD_LOCAL);
    collx_adapter_open_fn *open =
        handle ? (collx_adapter_open_fn *)dlsym(handle, COLLX_ADAPTER_OPEN) : NULL;

    usleep(300000);
    return open ? open(door, why, size) : -ENOENT;
}
