#include "algorithms/reduction/reduce.h"

#include "algorithms/reduction/kernels.h"
#include "base/options.h"

#include <stdbool.h>

/* Whether this CPU has the instructions, and the system keeps their registers. */
static bool runs(enum collx_kernels version)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (version == COLLX_KERNELS_AVX512)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    if (version == COLLX_KERNELS_AVX2)
        return __builtin_cpu_supports("avx2");
#endif
    return version == COLLX_KERNELS_C;
}

/* Whether the program pays for vectors of that width as well: for a millisecond after one these
 * CPUs run everything at a lower clock.  The C library and compilers avoid them there, too. */
static bool slows_down(enum collx_kernels version)
{
#if defined(__x86_64__)
    return version == COLLX_KERNELS_AVX512 &&
           (__builtin_cpu_is("skylake-avx512") || __builtin_cpu_is("cascadelake") ||
            __builtin_cpu_is("cooperlake"));
#else
    (void)version;
    return false;
#endif
}

static const struct collx_kernel_table *const tables[COLLX_KERNELS_VERSIONS] = {
#if defined(__x86_64__)
    [COLLX_KERNELS_AVX512] = &collx_kernels_avx512,
    [COLLX_KERNELS_AVX2] = &collx_kernels_avx2,
#endif
    [COLLX_KERNELS_C] = &collx_kernels_c,
};

/* The widest version from `version` on that runs here; plain C always does. */
static enum collx_kernels choose(enum collx_kernels version)
{
    const bool by_itself = version == COLLX_KERNELS_AUTO;

    while (!runs(version) || (by_itself && slows_down(version)))
        version++;
    return version;
}

enum collx_kernels collx_reduce_version(void)
{
    /* For each value of the option what was found, AUTO before.  Threads that find it at the same
     * time find the same, and nothing else depends on it: relaxed is enough. */
    static enum collx_kernels found[COLLX_KERNELS_VERSIONS];
    unsigned option = (unsigned)collx_option_number(COLLX_OPTION_KERNELS);
    enum collx_kernels version = __atomic_load_n(&found[option], __ATOMIC_RELAXED);

    if (__builtin_expect(version == COLLX_KERNELS_AUTO, 0)) {
        version = choose((enum collx_kernels)option);
        __atomic_store_n(&found[option], version, __ATOMIC_RELAXED);
    }
    return version;
}

static collx_reduce_fn *kernel(enum collx_kernels version, enum collx_op op, enum collx_elem elem)
{
    return op < COLLX_OP_COUNT && elem < COLLX_ELEMS ? tables[version]->kernel[elem][op] : NULL;
}

collx_reduce_fn *collx_reduce_kernel(enum collx_op op, enum collx_elem elem)
{
    return kernel(collx_reduce_version(), op, elem);
}

collx_reduce_fn *collx_reduce_kernel_of(enum collx_kernels version, enum collx_op op,
                                        enum collx_elem elem)
{
    return runs(version) ? kernel(version, op, elem) : NULL;
}
