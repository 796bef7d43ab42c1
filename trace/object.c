#include "trace/object.h"

#include <dlfcn.h>
#include <features.h>
#include <link.h>

#if __GLIBC_PREREQ(2, 35) && !defined COLLX_OLDER_GLIBC

/* Some 10 ns, without a lock. */
bool collx_object_find(const void *address, struct collx_object *object)
{
    struct dl_find_object found;

    if (_dl_find_object((void *)address, &found))
        return false;
    *object = (struct collx_object){found.dlfo_link_map->l_name, found.dlfo_link_map->l_addr,
                                    found.dlfo_map_start, found.dlfo_map_end};
    return true;
}

#else

struct lookup {
    const void *address;
    struct collx_object *object;
    bool is_later; /* the first object has been looked at */
};

/* Most calls come from where the last one came from, which holds until something is unloaded. */
static _Thread_local struct {
    unsigned long long unloaded;
    struct collx_object object;
} last;

static bool lies_in(const struct collx_object *object, const void *address)
{
    return address >= object->start && address < object->end;
}

static int look(struct dl_phdr_info *info, size_t size, void *data)
{
    struct lookup *lookup = data;
    uintptr_t from = UINTPTR_MAX, to = 0;

    (void)size;
    if (!lookup->is_later && last.unloaded == info->dlpi_subs &&
        lies_in(&last.object, lookup->address)) {
        *lookup->object = last.object;
        return 1;
    }
    lookup->is_later = true;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type != PT_LOAD)
            continue;
        from = segment->p_vaddr < from ? segment->p_vaddr : from;
        to = segment->p_vaddr + segment->p_memsz > to ? segment->p_vaddr + segment->p_memsz : to;
    }
    const struct collx_object object = {info->dlpi_name, info->dlpi_addr,
                                        (const void *)(info->dlpi_addr + from),
                                        (const void *)(info->dlpi_addr + to)};
    if (from >= to || !lies_in(&object, lookup->address))
        return 0;
    last.unloaded = info->dlpi_subs;
    *lookup->object = last.object = object;
    return 1;
}

bool collx_object_find(const void *address, struct collx_object *object)
{
    struct lookup lookup = {.address = address, .object = object};

    return dl_iterate_phdr(look, &lookup);
}

#endif
