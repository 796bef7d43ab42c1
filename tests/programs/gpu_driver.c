/* Stands in for CUDA's driver: some memory is a GPU's. */
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
