#include "base/algorithm.h"

#include <string.h>

const struct collx_algorithm *collx_algorithm_find(enum collx_kind kind, const char *name)
{
    for (const struct collx_algorithm *const *each = collx_algorithms; *each; each++)
        if ((*each)->kind == kind && !strcmp((*each)->name, name))
            return *each;
    return NULL;
}
