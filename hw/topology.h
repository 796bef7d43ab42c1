/* A machine as hwloc sees it: its packages, NUMA nodes, last caches and cores, nothing else.  Only
 * libcollx-topology.so and tests contain this; all others ask through hw/place.h. */
#ifndef COLLX_TOPOLOGY_H
#define COLLX_TOPOLOGY_H

#include "hw/place.h"

struct collx_topology;

/* `description`: as in collx_place_find.  0, or COLLX_EUNFIT and why not.
 * To be destroyed. */
int collx_topology_create(const char *description, struct collx_topology **topology, char *why,
                          size_t size);
/* NULL is fine. */
void collx_topology_destroy(struct collx_topology *topology);

struct collx_machine collx_topology_count(const struct collx_topology *topology);

/* The place of who may use the CPUs that are set in mask[words]: at each level the one that has all
 * of them.  CPUs that the machine does not have do not count. */
struct collx_place collx_topology_place(const struct collx_topology *topology,
                                        const unsigned long *mask, unsigned words);

/* The place of who is bound to this core: 0 … cores - 1, in the machine's own order. */
struct collx_place collx_topology_core(const struct collx_topology *topology, int core);

/* The one symbol of the library; see hw/place.h. */
collx_place_find_fn collx_topology_find;

#endif
