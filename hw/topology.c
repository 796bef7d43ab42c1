#include "hw/topology.h"

#include "base/error.h"

#include <hwloc.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { CPUS = 4096 }; /* that a process can be bound to */

struct collx_topology {
    hwloc_topology_t machine;
    hwloc_obj_type_t cache; /* the last that cores share; HWLOC_OBJ_PU: there is none */
};

/* A process may have another hwloc than the one that we were built for. */
static bool fits(hwloc_topology_t machine)
{
    return hwloc_get_api_version() >> 16 == HWLOC_API_VERSION >> 16 &&
           hwloc_topology_abi_check(machine) == 0;
}

static int load(hwloc_topology_t machine, const char *description)
{
    static const hwloc_obj_type_t kept[] = {HWLOC_OBJ_PACKAGE, HWLOC_OBJ_L2CACHE, HWLOC_OBJ_L3CACHE,
                                            HWLOC_OBJ_CORE};

    /* Devices take most of the time. */
    hwloc_topology_set_all_types_filter(machine, HWLOC_TYPE_FILTER_KEEP_NONE);
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        hwloc_topology_set_type_filter(machine, kept[i], HWLOC_TYPE_FILTER_KEEP_ALL);
    /* Groups are what NUMA nodes within a package hang on: without them all would be everybody's.
     */
    hwloc_topology_set_type_filter(machine, HWLOC_OBJ_GROUP, HWLOC_TYPE_FILTER_KEEP_STRUCTURE);
    /* This one moves the calling thread over all CPUs, to ask each. */
    hwloc_topology_set_components(machine, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "x86");
    /* Ranks may be confined to CPUs of their own and must still give everything the same number. */
    hwloc_topology_set_flags(machine, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
    if (!*description)
        return hwloc_topology_load(machine);
    int error = access(description, F_OK) ? hwloc_topology_set_synthetic(machine, description)
                                          : hwloc_topology_set_xml(machine, description);
    return error ? error : hwloc_topology_load(machine);
}

/* L3, else an L2 that cores share. */
static hwloc_obj_type_t last_cache(hwloc_topology_t machine)
{
    if (hwloc_get_nbobjs_by_type(machine, HWLOC_OBJ_L3CACHE) > 0)
        return HWLOC_OBJ_L3CACHE;
    int shared = hwloc_get_nbobjs_by_type(machine, HWLOC_OBJ_L2CACHE);
    return shared > 0 && shared < hwloc_get_nbobjs_by_type(machine, HWLOC_OBJ_CORE)
               ? HWLOC_OBJ_L2CACHE
               : HWLOC_OBJ_PU;
}

int collx_topology_create(const char *description, struct collx_topology **topology, char *why,
                          size_t size)
{
    struct collx_topology *self = calloc(1, sizeof *self);

    *topology = NULL;
    if (!self || hwloc_topology_init(&self->machine)) {
        snprintf(why, size, "out of memory");
        free(self);
        return COLLX_EUNFIT;
    }
    if (!fits(self->machine)) {
        snprintf(why, size, "this process has version %#x of hwloc, collx was built for %#x",
                 hwloc_get_api_version(), HWLOC_API_VERSION);
    } else if (load(self->machine, description)) {
        if (*description)
            snprintf(why, size,
                     "'%s' is no machine: neither a file that lstopo wrote (lstopo machine.xml) "
                     "nor a description such as 'package:2 numa:1 l3:4 core:8 pu:1'",
                     description);
        else
            snprintf(why, size, "hwloc does not find out what this machine consists of");
    } else if (!*description && !hwloc_topology_is_thissystem(self->machine)) {
        snprintf(why, size,
                 "hwloc was told to describe another machine (HWLOC_XMLFILE or "
                 "HWLOC_SYNTHETIC); COLLX_TOPOLOGY is for that");
    } else {
        self->cache = last_cache(self->machine);
        *topology = self;
        return 0;
    }
    collx_topology_destroy(self);
    return COLLX_EUNFIT;
}

void collx_topology_destroy(struct collx_topology *topology)
{
    if (!topology)
        return;
    hwloc_topology_destroy(topology->machine);
    free(topology);
}

static int count(const struct collx_topology *topology, hwloc_obj_type_t type)
{
    int number = hwloc_get_nbobjs_by_type(topology->machine, type);

    return number > 0 ? number : 0;
}

struct collx_machine collx_topology_count(const struct collx_topology *topology)
{
    return (struct collx_machine){
        .packages = count(topology, HWLOC_OBJ_PACKAGE),
        .numa_nodes = count(topology, HWLOC_OBJ_NUMANODE),
        .caches = topology->cache == HWLOC_OBJ_PU ? 0 : count(topology, topology->cache),
        .cores = count(topology, HWLOC_OBJ_CORE),
        .cpus = count(topology, HWLOC_OBJ_PU),
    };
}

/* The first that is near to the first of these CPUs, which is ordinary memory where there are
 * several kinds, provided that it is near to all of them. */
static int numa_of(hwloc_topology_t machine, hwloc_const_cpuset_t set)
{
    unsigned first = (unsigned)hwloc_bitmap_first(set);
    hwloc_obj_t node = NULL;

    while ((node = hwloc_get_next_obj_by_type(machine, HWLOC_OBJ_NUMANODE, node)))
        if (hwloc_bitmap_isset(node->cpuset, first))
            return hwloc_bitmap_isincluded(set, node->cpuset) ? (int)node->os_index : -1;
    return -1;
}

static struct collx_place place_of(const struct collx_topology *topology, hwloc_const_cpuset_t set)
{
    struct collx_place place = COLLX_NOWHERE;
    hwloc_obj_t smallest =
        hwloc_bitmap_iszero(set) ? NULL : hwloc_get_obj_covering_cpuset(topology->machine, set);

    for (hwloc_obj_t each = smallest; each; each = each->parent) {
        int first = hwloc_bitmap_first(each->cpuset);
        if (each->type == HWLOC_OBJ_PACKAGE)
            place.package = first;
        else if (each->type == topology->cache)
            place.cache = first;
    }
    place.numa = numa_of(topology->machine, set);
    return place;
}

struct collx_place collx_topology_place(const struct collx_topology *topology,
                                        const unsigned long *mask, unsigned words)
{
    struct collx_place place = COLLX_NOWHERE;
    hwloc_bitmap_t set = hwloc_bitmap_alloc();

    if (set && !hwloc_bitmap_from_ulongs(set, words, mask) &&
        !hwloc_bitmap_and(set, set, hwloc_topology_get_topology_cpuset(topology->machine)))
        place = place_of(topology, set);
    hwloc_bitmap_free(set);
    return place;
}

struct collx_place collx_topology_core(const struct collx_topology *topology, int core)
{
    hwloc_obj_t object = hwloc_get_obj_by_type(topology->machine, HWLOC_OBJ_CORE, (unsigned)core);

    return object ? place_of(topology, object->cpuset) : COLLX_NOWHERE;
}

__attribute__((visibility("default"))) int collx_topology_find(const char *description, int rank,
                                                               struct collx_machine *machine,
                                                               struct collx_place *place, char *why,
                                                               size_t size)
{
    unsigned long mask[CPUS / (8 * sizeof(unsigned long))] = {0};
    struct collx_topology *topology;

    if (collx_topology_create(description, &topology, why, size))
        return COLLX_EUNFIT;
    *machine = collx_topology_count(topology);
    if (*description)
        *place = collx_topology_core(topology, machine->cores ? rank % machine->cores : 0);
    else if (!sched_getaffinity(0, sizeof mask, (cpu_set_t *)mask))
        *place = collx_topology_place(topology, mask, sizeof mask / sizeof *mask);
    collx_topology_destroy(topology);
    return 0;
}
