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

/* Raised when anything changes that processes share, tell each other or do together.  Releases tell
 * themselves apart. */
enum { PROTOCOL = 47 };

uint64_t collx_algorithms_hash(void)
{
    const uint32_t protocol = PROTOCOL;
    uint64_t hash = collx_hash(COLLX_HASH_START, COLLX_RELEASE, strlen(COLLX_RELEASE));

    hash = collx_hash(hash, &protocol, sizeof protocol);
    for (const struct collx_algorithm *const *each = collx_algorithms; *each; each++) {
        hash = collx_hash(hash, &(*each)->kind, sizeof(*each)->kind);
        hash = collx_hash(hash, (*each)->name, strlen((*each)->name));
        /* Their values are handed over in this order. */
        for (const struct collx_param *param = (*each)->params; param && param->name; param++)
            hash = collx_hash(hash, param->name, strlen(param->name));
    }
    return hash;
}
