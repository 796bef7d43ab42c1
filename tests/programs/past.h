/* The MPI library's own functions, past collx: as some languages call them. */
#ifndef COLLX_TESTS_PAST_H
#define COLLX_TESTS_PAST_H

#include "tests/programs/check.h"

#include <dlfcn.h>
#include <mpi.h>

static inline void *library_has(const char *name)
{
#ifdef OPEN_MPI
    void *library = dlopen("libmpi.so.40", RTLD_NOLOAD | RTLD_NOW);
#else
    void *library = dlopen("libmpich.so.12", RTLD_NOLOAD | RTLD_NOW);
#endif

    CHECK(library);
    return dlsym(library, name);
}

static inline void *past_collx(const char *name)
{
    void *found = library_has(name);

    CHECK(found);
    return found;
}

#endif
