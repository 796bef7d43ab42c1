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

using Places = std::vector<collx_place>;

inline Places with_unknown()
{
    Places places = ranks_on(14, 2, 1, 7, true);
    places[0] = places[9] = nowhere;
    return places;
}

/* Few ranks and many, one a core, on machines of one cache, of several, and of several packages. */
struct Occupied {
    int ranks;
    bool one_cache;
    Places places;
};

inline std::vector<Occupied> occupied()
{
    const int machines[][3] = {{2, 1, 8}, {2, 4, 8}, {4, 2, 6}, {1, 8, 8}, {1, 1, 64}, {2, 1, 32}};
    std::vector<Occupied> all;

    for (const auto &[packages, caches, cores] : machines)
        for (int ranks : {9, 12, 16, 31, 48, 61, 64, 100, 128})
            for (bool in_turn : {false, true})
                all.push_back({ranks, packages == 1 && caches == 1,
                               ranks_on(ranks, packages, caches, cores, in_turn)});
    return all;
}

/* Where ranks can be divided into groups. */
struct Machine {
    const char *name;
    Places places;
    int groups;
};

const Machine divided[] = {
    {"9_on_2_packages", ranks_on(9, 2, 1, 8), 2}, /* the second has one rank */
    {"9_on_3_packages_in_turn", ranks_on(9, 3, 1, 3, true), 3},
    {"12_on_4_packages", ranks_on(12, 4, 1, 3), 4},
    {"14_on_2_packages_and_nowhere", with_unknown(), 4},
    {"16_on_1_package_of_4_caches", ranks_on(16, 1, 4, 4), 4},
    {"16_on_2_packages_of_2_caches", ranks_on(16, 2, 2, 4), 4},
};

#endif
