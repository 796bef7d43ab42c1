/* Machines that nobody here has, and ranks on them, for tests. */
#ifndef COLLX_TESTS_MACHINES_H
#define COLLX_TESTS_MACHINES_H

extern "C" {
#include "hw/place.h"
}

#include <vector>

const collx_place nowhere = {-1, -1, -1};

/* Ranks on packages of `caches` caches of `cores` cores each, with one NUMA node a package: one
 * rank a core, in order or dealt out to the packages in turn. */
inline std::vector<collx_place> ranks_on(int ranks, int packages, int caches, int cores,
                                         bool in_turn = false)
{
    std::vector<collx_place> places;

    for (int rank = 0; rank < ranks; rank++) {
        int all = packages * caches * cores, per = caches * cores;
        int core = in_turn ? rank % packages * per + rank / packages % per : rank % all;
        places.push_back({core / per * per, core / per, core / cores * cores});
    }
    return places;
}

#endif
