/* Buffers in the memory of a GPU.
 *
 * An MPI library that is made for it takes addresses at which no CPU can load or store.  Such a
 * buffer is treated like one that is not contiguous: the library packs it into memory of ours, and
 * unpacks the result, which it can do for its own.  So a rank may have its buffer there whether the
 * others do or not.
 *
 * Whose an address is the GPU's driver tells, which programs load when they first need it.
 */
#ifndef COLLX_PMPI_GPU_H
#define COLLX_PMPI_GPU_H

#include <stdatomic.h>
#include <stdbool.h>

/* Addresses may be a GPU's. */
extern atomic_bool collx_gpu_possible;

/* Ask the MPI library, or COLLX_GPU, whether they may.  Local; again for each communicator, since a
 * policy may have set the option. */
void collx_gpu_init(void);

bool collx_gpu_find(const void *address);

static inline bool collx_gpu_may_be(void)
{
    /* Relaxed: it orders nothing, and is set before the first call that it is asked for. */
    return __builtin_expect(atomic_load_explicit(&collx_gpu_possible, memory_order_relaxed), 0);
}

/* Whether a GPU's driver knows this address.  NULL is none. */
static inline bool collx_gpu_has(const void *address)
{
    return collx_gpu_may_be() && collx_gpu_find(address);
}

#endif
