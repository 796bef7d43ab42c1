/* What the launcher tells a process in its environment, before MPI does. */
#ifndef COLLX_LAUNCHER_H
#define COLLX_LAUNCHER_H

#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* This is rank 0 of its job, or nobody says so: it may speak for all. */
static inline bool collx_launcher_first(void)
{
    static const char *const names[] = {"PMIX_RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK",
                                        "SLURM_PROCID"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *rank = getenv(names[i]);
        if (rank)
            return !strcmp(rank, "0");
    }
    return true;
}

/* The largest number of a list for all nodes, as Slurm writes it: "4(x2),3" is 4, 4 and 3. */
static inline int collx_launcher_largest(const char *list)
{
    long largest = 0;

    while (*list) {
        char *end;
        long number = strtol(list, &end, 10);
        if (end == list)
            return 0;
        largest = number > largest ? number : largest;
        list = end + strcspn(end, ",");
        list += *list == ',';
    }
    return largest > 0 && largest <= INT_MAX ? (int)largest : 0;
}

/* How many ranks of a job are on a node, and how many it has in all. */
static const struct collx_launcher {
    const char *local, *all;
} collx_launchers[] = {
    {"OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_SIZE"},
    {"MPI_LOCALNRANKS", "PMI_SIZE"},
    {"PALS_LOCAL_SIZE", "PMI_SIZE"},
    {"SLURM_STEP_TASKS_PER_NODE", "SLURM_STEP_NUM_TASKS"},
};
enum { COLLX_LAUNCHER_COUNT = sizeof collx_launchers / sizeof *collx_launchers };

static inline int collx_launcher_number(const char *name)
{
    const char *value = getenv(name);

    return value ? collx_launcher_largest(value) : 0;
}

/* Ranks of this job on this node, or of its fullest node where no more is known; 0: nobody says. */
static inline int collx_launcher_local_ranks(void)
{
    int ranks = 0;

    for (int i = 0; i < COLLX_LAUNCHER_COUNT && !ranks; i++)
        ranks = collx_launcher_number(collx_launchers[i].local);
    return ranks;
}

/* The same of what is of a job of `ranks` ranks, or more: a launcher that this one was started by
 * has left its own numbers, mostly of another job than that.  0: nobody says. */
static inline int collx_launcher_node_most(int ranks)
{
    int most = 0;

    for (int i = 0; i < COLLX_LAUNCHER_COUNT; i++) {
        const struct collx_launcher *launcher = &collx_launchers[i];
        const int local = collx_launcher_number(launcher->local);
        if (local > most && collx_launcher_number(launcher->all) == ranks)
            most = local;
    }
    return most;
}

#endif
