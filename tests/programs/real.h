/* For libraries that stand in front of an MPI library. */
#ifndef COLLX_TESTS_REAL_H
#define COLLX_TESTS_REAL_H

#include <dlfcn.h>

/* Past collx, which has the names without a P. */
static inline void *real(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

/* `function` itself, there.  Its type is the header's. */
#define REAL(function) ((__typeof__(&(function)))real(#function))

#endif
