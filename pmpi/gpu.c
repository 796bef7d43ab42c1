#include "pmpi/gpu.h"

#include "base/options.h"
#include "pmpi/pmpi.h"

#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

atomic_bool collx_gpu_possible;

/* Of CUDA's CUmemorytype; the attribute's number is the same in HIP. */
enum { MEMORY_TYPE = 2, CUDA_HOST = 1 };

/* cuPointerGetAttribute, hipPointerGetAttribute: not 0 for memory that is not the driver's. */
typedef int ask_fn(void *value, int attribute, uintptr_t address);

static bool is_cuda(ask_fn *ask, const void *address)
{
    unsigned type = 0;

    return !ask(&type, MEMORY_TYPE, (uintptr_t)address) && type && type != CUDA_HOST;
}

/* The types have other numbers in each release, so memory of the host that HIP knows counts, too:
 * it is copied once more than it need be. */
static bool is_hip(ask_fn *ask, const void *address)
{
    unsigned type[4] = {0};

    return !ask(type, MEMORY_TYPE, (uintptr_t)address);
}

static struct driver {
    const char *library, *function;
    bool (*is)(ask_fn *ask, const void *address);
    _Atomic(ask_fn *) ask; /* NULL: it is not loaded */
} drivers[] = {
    {"libcuda.so.1", "cuPointerGetAttribute", is_cuda, NULL},
    {"libamdhip64.so.5", "hipPointerGetAttribute", is_hip, NULL},
    {"libamdhip64.so.6", "hipPointerGetAttribute", is_hip, NULL},
    {"libamdhip64.so.7", "hipPointerGetAttribute", is_hip, NULL},
};
enum { DRIVERS = sizeof drivers / sizeof *drivers };

/* No MPI standard has these: libraries of Open MPI's and MPICH's families do, those of them that
 * have never heard of the GPU's maker do not. */
static bool says_so(const char *function)
{
    int (*query)(void) = (int (*)(void))dlsym(collx_door.mpi, function);

    return query && query() == 1;
}

/* Cray's library, and MVAPICH of before such functions. */
static bool is_told(const char *variable)
{
    const char *value = getenv(variable);

    return value && strcmp(value, "1") == 0;
}

static bool library_takes_them(void)
{
    return says_so("MPIX_Query_cuda_support") || says_so("MPIX_Query_rocm_support") ||
           says_so("MPIX_Query_hip_support") || is_told("MPICH_GPU_SUPPORT_ENABLED") ||
           is_told("MV2_USE_CUDA") || is_told("MV2_USE_ROCM");
}

void collx_gpu_init(void)
{
    const int64_t wanted = collx_option_number(COLLX_OPTION_GPU);

    atomic_store_explicit(&collx_gpu_possible,
                          wanted == COLLX_TRISTATE_ON ||
                              (wanted == COLLX_TRISTATE_AUTO && library_takes_them()),
                          memory_order_relaxed);
}

static int count_loaded(struct dl_phdr_info *object, size_t size, void *loaded)
{
    (void)size;
    *(unsigned long long *)loaded = object->dlpi_adds;
    return 1;
}

/* Without a lock of ours: a thread that loads a library holds the loader's, and its constructor may
 * be in a collective.  Threads that meet here find the same. */
static void look_for_drivers(void)
{
    static atomic_ullong seen;
    unsigned long long loaded = 0;

    dl_iterate_phdr(count_loaded, &loaded);
    /* Acquire: pairs with the release below; else a driver that is loaded could be missed. */
    if (atomic_load_explicit(&seen, memory_order_acquire) == loaded)
        return;
    for (int i = 0; i < DRIVERS; i++) {
        if (atomic_load_explicit(&drivers[i].ask, memory_order_relaxed))
            continue;
        /* Kept: it is in use. */
        void *library = dlopen(drivers[i].library, RTLD_LAZY | RTLD_NOLOAD);
        if (library)
            atomic_store_explicit(&drivers[i].ask, (ask_fn *)dlsym(library, drivers[i].function),
                                  memory_order_relaxed);
    }
    atomic_store_explicit(&seen, loaded, memory_order_release);
}

bool collx_gpu_find(const void *address)
{
    if (!address)
        return false;
    look_for_drivers();
    for (int i = 0; i < DRIVERS; i++) {
        ask_fn *ask = atomic_load_explicit(&drivers[i].ask, memory_order_relaxed);
        if (ask && drivers[i].is(ask, address))
            return true;
    }
    return false;
}
