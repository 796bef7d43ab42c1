#include "pmpi/gpu.h"

#include "base/options.h"
#include "pmpi/pmpi.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>

atomic_bool collx_gpu_possible;

/* Of CUDA's CUmemorytype; the attribute's number is the same in HIP. */
enum { MEMORY_TYPE = 2, CUDA_HOST = 1 };

/* cuPointerGetAttribute, hipPointerGetAttribute: not 0 for memory that is not the driver's. */
typedef int ask_fn(void *value, int attribute, uintptr_t address);

static void *open_cuda(void *library)
{
    return dlsym(library, "cuPointerGetAttribute");
}

static bool is_cuda(void *opened, const void *address)
{
    ask_fn *ask = (ask_fn *)opened;
    unsigned type = 0;

    return !ask(&type, MEMORY_TYPE, (uintptr_t)address) && type && type != CUDA_HOST;
}

struct hip {
    ask_fn *ask;
    int (*peek)(void), (*take)(void); /* at this thread's last error */
};

static void *open_hip(void *library)
{
    struct hip *hip = calloc(1, sizeof *hip);

    if (!hip)
        return NULL;
    hip->ask = (ask_fn *)dlsym(library, "hipPointerGetAttribute");
    hip->peek = (int (*)(void))dlsym(library, "hipPeekAtLastError");
    hip->take = (int (*)(void))dlsym(library, "hipGetLastError");
    return hip;
}

/* The types have other numbers in each release.  0 is of the host in all, though, whether HIP knows
 * it or not; what else of the host HIP knows is copied once more than it need be. */
static bool is_hip(void *opened, const void *address)
{
    const struct hip *hip = opened;
    unsigned type[4] = {0};

    if (!hip->ask || !hip->peek || !hip->take)
        return false;
    const bool had_none = !hip->peek();
    const bool is = !hip->ask(type, MEMORY_TYPE, (uintptr_t)address) && *type;
    /* Most releases take it for an error to be asked about other memory, which the program would
     * find after what it does next. */
    if (had_none && hip->peek())
        hip->take();
    return is;
}

/* Of Level Zero's ze_api.h. */
enum { ZE_GPU_ONLY = 1, ZE_CONTEXT = 0xd, ZE_ALLOCATION = 0x17, ZE_DEVICE = 2, ZE_SHARED = 3 };
struct ze_context {
    uint32_t structure;
    const void *next;
    uint32_t flags;
};
struct ze_allocation {
    uint32_t structure;
    void *next;
    uint32_t type;
    uint64_t id, page_bytes;
};

enum { ZE_DRIVERS = 8 };

/* A driver is asked by a context, and knows what the program has allocated by others, too; MPI
 * libraries count on that as well. */
struct ze {
    int (*ask)(void *context, const void *address, struct ze_allocation *, void **device);
    void *contexts[ZE_DRIVERS];
    int count;
};

/* The MPI library has initialised the drivers, or will for the first buffer; all may do so again.
 * Without one there is none to ask. */
static void *open_ze(void *library)
{
    int (*init)(uint32_t) = (int (*)(uint32_t))dlsym(library, "zeInit");
    int (*get)(uint32_t *, void **) = (int (*)(uint32_t *, void **))dlsym(library, "zeDriverGet");
    int (*create)(void *, const struct ze_context *, void **) =
        (int (*)(void *, const struct ze_context *, void **))dlsym(library, "zeContextCreate");
    const struct ze_context description = {.structure = ZE_CONTEXT};
    void *found[ZE_DRIVERS];
    uint32_t count = ZE_DRIVERS;
    struct ze *ze = calloc(1, sizeof *ze);

    if (!ze || !init || !get || !create || init(ZE_GPU_ONLY) || get(&count, found))
        return ze;
    ze->ask = (int (*)(void *, const void *, struct ze_allocation *, void **))dlsym(
        library, "zeMemGetAllocProperties");
    for (uint32_t i = 0; ze->ask && i < count; i++)
        ze->count += !create(found[i], &description, &ze->contexts[ze->count]);
    return ze;
}

static bool is_ze(void *opened, const void *address)
{
    const struct ze *ze = opened;

    for (int i = 0; i < ze->count; i++) {
        struct ze_allocation allocation = {.structure = ZE_ALLOCATION};
        void *device;
        if (!ze->ask(ze->contexts[i], address, &allocation, &device) &&
            (allocation.type == ZE_DEVICE || allocation.type == ZE_SHARED))
            return true;
    }
    return false;
}

static struct driver {
    const char *library;
    void *(*open)(void *library); /* what `is` takes; NULL: to be tried again */
    bool (*is)(void *opened, const void *address);
    _Atomic(void *) opened; /* NULL: it is not loaded */
} drivers[] = {
    {"libcuda.so.1", open_cuda, is_cuda, NULL},   {"libamdhip64.so.5", open_hip, is_hip, NULL},
    {"libamdhip64.so.6", open_hip, is_hip, NULL}, {"libamdhip64.so.7", open_hip, is_hip, NULL},
    {"libze_loader.so.1", open_ze, is_ze, NULL},
};
enum { DRIVERS = sizeof drivers / sizeof *drivers };

/* No MPI standard has these: libraries of Open MPI's and MPICH's families do, those of them that
 * have never heard of the GPU's maker do not. */
static bool says_so(const char *function)
{
    int (*query)(void) = (int (*)(void))dlsym(collx_door.mpi, function);

    return query && query() == 1;
}

/* Of MPICH 3.4, and what is made from it, MPIX_Query_cuda_support ends the program, unless it has
 * been compiled without assertions.  It has this one as well, as all later ones do. */
static bool takes_cuda(void)
{
    enum { CUDA = 0 }; /* MPICH's MPIX_GPU_SUPPORT_CUDA */
    int (*query)(int gpu, int *takes) =
        (int (*)(int, int *))dlsym(collx_door.mpi, "MPIX_GPU_query_support");
    int takes = 0;

    if (!query)
        return says_so("MPIX_Query_cuda_support");
    return query(CUDA, &takes) == MPI_SUCCESS && takes;
}

/* Cray's library is told, Intel's, where 2 is more than 1, MVAPICH 2 of before such functions, and
 * MVAPICH 3: its own MPIX_Query_cuda_support is not asked, as it has MPICH's other one, too. */
static bool is_told(void)
{
    static const char *const variables[] = {"MPICH_GPU_SUPPORT_ENABLED",
                                            "I_MPI_OFFLOAD",
                                            "MV2_USE_CUDA",
                                            "MV2_USE_ROCM",
                                            "MVP_USE_CUDA",
                                            "MVP_ENABLE_GPU"};

    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *value = getenv(variables[i]);
        if (value && atoi(value) > 0)
            return true;
    }
    return false;
}

static bool library_takes_them(void)
{
    return is_told() || takes_cuda() || says_so("MPIX_Query_rocm_support") ||
           says_so("MPIX_Query_hip_support") || says_so("MPIX_Query_ze_support");
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
    const int keep = errno;
    static atomic_ullong seen;
    unsigned long long loaded = 0;

    dl_iterate_phdr(count_loaded, &loaded);
    /* Acquire: pairs with the release below; else a driver that is loaded could be missed. */
    if (atomic_load_explicit(&seen, memory_order_acquire) == loaded)
        return;
    for (int i = 0; i < DRIVERS; i++) {
        struct driver *driver = &drivers[i];
        if (atomic_load_explicit(&driver->opened, memory_order_relaxed))
            continue;
        /* Kept: it is in use.  Not by dlopen(), which UCX replaces by one that looks where the file
         * lies first, and misses what is loaded under that name from elsewhere. */
        void *library = dlmopen(LM_ID_BASE, driver->library, RTLD_LAZY | RTLD_NOLOAD);
        /* Release: pairs with the acquire where it is asked, which else could miss what it holds.
         * Of two that are opened at a time one stays, and the other may be in use. */
        if (library)
            atomic_store_explicit(&driver->opened, driver->open(library), memory_order_release);
    }
    atomic_store_explicit(&seen, loaded, memory_order_release);
    errno = keep;
}

bool collx_gpu_find(const void *address)
{
    if (!address)
        return false;
    look_for_drivers();
    for (int i = 0; i < DRIVERS; i++) {
        /* Acquire: pairs with the release in look_for_drivers(). */
        void *opened = atomic_load_explicit(&drivers[i].opened, memory_order_acquire);
        if (opened && drivers[i].is(opened, address))
            return true;
    }
    return false;
}
