/* Stands in for CUDA's driver, for HIP, of release HIP_RELEASE, and for Level Zero's driver: some
 * memory is a GPU's. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default)

static uintptr_t first, end;

void standin_own(void *memory, size_t bytes)
{
    first = (uintptr_t)memory;
    end = first + bytes;
}

int cuPointerGetAttribute(void *value, int attribute, unsigned long long address)
{
    enum { INVALID_VALUE = 1, MEMORY_TYPE = 2, DEVICE = 2 };

    if (attribute != MEMORY_TYPE || address < first || address >= end)
        return INVALID_VALUE;
    *(unsigned *)value = DEVICE;
    return 0;
}

static _Thread_local int last_error;

int hipPeekAtLastError(void)
{
    return last_error;
}

int hipGetLastError(void)
{
    const int error = last_error;

    last_error = 0;
    return error;
}

int hipPointerGetAttribute(void *value, int attribute, void *address)
{
    enum { INVALID_VALUE = 1, MEMORY_TYPE = 2, OF_HOST = 0, DEVICE = HIP_RELEASE < 6 ? 1 : 2 };
    const bool is_known = (uintptr_t)address >= first && (uintptr_t)address < end;

    if (attribute != MEMORY_TYPE || (!is_known && HIP_RELEASE < 7))
        return last_error = INVALID_VALUE;
    *(unsigned *)value = is_known ? DEVICE : OF_HOST;
    return 0;
}

/* A call of the program's own, which has not looked yet. */
void standin_fail(int error)
{
    last_error = error;
}

/* Of two drivers the memory is the latter's; a driver answers about its own context. */
enum { DRIVERS = 2, ZE_UNINITIALIZED = 0x78000001, ZE_INVALID = 0x78000004 };
static bool initialised;
static char drivers[DRIVERS], contexts[DRIVERS], device;

int zeInit(uint32_t flags)
{
    enum { GPU_ONLY = 1 };

    initialised = flags == 0 || flags == GPU_ONLY;
    return initialised ? 0 : ZE_INVALID;
}

int zeDriverGet(uint32_t *count, void **found)
{
    if (!initialised)
        return ZE_UNINITIALIZED;
    if (!*count || *count > DRIVERS)
        *count = DRIVERS;
    for (uint32_t i = 0; found && i < *count; i++)
        found[i] = &drivers[i];
    return 0;
}

int zeContextCreate(void *driver, const void *description, void **context)
{
    enum { CONTEXT = 0xd };
    const ptrdiff_t which = (char *)driver - drivers;

    if (which < 0 || which >= DRIVERS || *(const uint32_t *)description != CONTEXT)
        return ZE_INVALID;
    *context = &contexts[which];
    return 0;
}

int zeMemGetAllocProperties(void *context, const void *address, void *properties, void **of)
{
    enum { ALLOCATION = 0x17, UNKNOWN = 0, DEVICE = 2, SHARED = 3 };
    struct {
        uint32_t structure;
        void *next;
        uint32_t type;
        uint64_t id, page_bytes;
    } *allocation = properties;
    const uintptr_t at = (uintptr_t)address;
    const ptrdiff_t which = (char *)context - contexts;

    if (which < 0 || which >= DRIVERS || allocation->structure != ALLOCATION)
        return ZE_INVALID;
    allocation->type = UNKNOWN;
    *of = NULL;
    if (which == 0 || at < first || at >= end)
        return 0;
    allocation->type = at < first + (end - first) / 2 ? DEVICE : SHARED;
    *of = &device;
    return 0;
}
