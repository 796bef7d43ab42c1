/* A library that passes MPI calls on, as Fortran bindings and tools do; here the "MPI" is a
 * function that is told who called it.  What makes it one is that it defines a function of MPI. */
#include <stdint.h>

#define PUBLIC __attribute__((visibility("default"), noinline))

PUBLIC int MPI_Barrier(void *comm);
PUBLIC uint32_t passing_on_site(uint32_t (*site)(const void *caller));

PUBLIC int MPI_Barrier(void *comm)
{
    return comm != 0;
}

static __attribute__((noinline)) uint32_t inner(uint32_t (*site)(const void *caller))
{
    uint32_t result = site(__builtin_return_address(0));

    __asm__ volatile("");
    return result;
}

PUBLIC uint32_t passing_on_site(uint32_t (*site)(const void *caller))
{
    uint32_t result = inner(site);

    __asm__ volatile("");
    return result;
}
