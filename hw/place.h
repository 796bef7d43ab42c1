/* Where on its node a process runs, as far as the cost of sharing a cache line goes.
 *
 * Who knows is hwloc, in a library of its own (hw/topology.h), libcollx-topology.so: it is loaded
 * into other people's processes only where it is asked for.
 */
#ifndef COLLX_PLACE_H
#define COLLX_PLACE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Numbers that are the same for all processes of a node, whatever each is allowed to use: a package
 * (socket) and a shared last cache go by their first CPU, a NUMA node by the number it has for the
 * kernel.  -1: not known, or the process is bound to several of them or not at all. */
struct collx_place {
    int32_t package, numa, cache;
};
static_assert(sizeof(struct collx_place) == 12, "it travels as bytes");

/* What ranks can have in common, the smallest first. */
enum collx_place_key { COLLX_CACHE, COLLX_NUMA, COLLX_PACKAGE, COLLX_PLACE_KEYS };

/* "last cache", … */
static inline const char *collx_place_key_name(enum collx_place_key key)
{
    static const char *const names[] = {"last cache", "NUMA node", "package"};

    return names[key];
}

static inline int32_t collx_place_key(const struct collx_place *place, enum collx_place_key key)
{
    return key == COLLX_CACHE ? place->cache : key == COLLX_NUMA ? place->numa : place->package;
}

#define COLLX_NOWHERE ((struct collx_place){-1, -1, -1})

/* Whether both are known to be at the same cache, NUMA node or package. */
static inline bool collx_place_shared(const struct collx_place *one,
                                      const struct collx_place *other, enum collx_place_key key)
{
    return collx_place_key(one, key) >= 0 &&
           collx_place_key(one, key) == collx_place_key(other, key);
}

/* The first of places[0 … i] that shares this with places[i]; i where there is none. */
int collx_places_first(const struct collx_place *places, int i, enum collx_place_key key);

/* The next NUMA node after *numa (-1: the first) that any of these is on.  False: there is none. */
bool collx_places_next_numa(const struct collx_place *places, int count, int *numa);

/* How many NUMA nodes they are on; not knowing counts as one.  `places` NULL: 1. */
int collx_places_numa_nodes(const struct collx_place *places, int count);

/* What a machine has. */
struct collx_machine {
    int packages, numa_nodes, caches, cores, cpus; /* caches: last ones; 0: it tells of none */
};

/* Where the calling thread is bound to.  With a description of another machine, hwloc's synthetic
 * or the path of an XML file, as if rank i was bound to core i of that, from the first again where
 * there are more; "": this machine.  Local; takes milliseconds, on large machines tens of them.
 * 0; or COLLX_EUNFIT and why, and what to do: then *machine is all 0, *place nowhere. */
typedef int collx_place_find_fn(const char *description, int rank, struct collx_machine *machine,
                                struct collx_place *place, char *why, size_t size);

/* The same, by the library that lies in folder `folder`; -ENOENT: there is none. */
int collx_place_find(const char *folder, const char *description, int rank,
                     struct collx_machine *machine, struct collx_place *place, char *why,
                     size_t size);

/* What that library is called, and its one symbol. */
#define COLLX_TOPOLOGY_LIBRARY "libcollx-topology.so"
#define COLLX_TOPOLOGY_FIND "collx_topology_find"

#endif
