#include "base/algorithm.h"
#include "base/hash.h"

#include <string.h>

const struct collx_algorithm *collx_algorithm_find(enum collx_kind kind, const char *name)
{
    for (const struct collx_algorithm *const *each = collx_algorithms; *each; each++)
        if ((*each)->kind == kind && !strcmp((*each)->name, name))
            return *each;
    return NULL;
}

uint64_t collx_algorithms_hash(void)
{
    uint64_t hash = COLLX_HASH_START;

    for (const struct collx_algorithm *const *each = collx_algorithms; *each; each++) {
        hash = collx_hash(hash, &(*each)->kind, sizeof(*each)->kind);
        hash = collx_hash(hash, (*each)->name, strlen((*each)->name));
    }
    return hash;
}
