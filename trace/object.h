/* The program and the libraries that are loaded. */
#ifndef COLLX_TRACE_OBJECT_H
#define COLLX_TRACE_OBJECT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct collx_object {
    const char *name; /* as the loader has it: "" is the program; its own until it is unloaded */
    uintptr_t base;   /* what its addresses in memory have more than those in its file */
    const void *start, *end; /* where it lies */
};

/* The object that an address lies in; false: it lies in none, or in code made at run time.  Takes
 * no lock that is held while a library's constructor runs. */
bool collx_object_find(const void *address, struct collx_object *object);

/* Both are the same one: also if one was unloaded, and what came after it lies in the same place.
 */
static inline bool collx_object_is(const struct collx_object *one, const struct collx_object *other)
{
    return one->base == other->base && one->start == other->start && one->end == other->end &&
           !strcmp(one->name, other->name);
}

#endif
