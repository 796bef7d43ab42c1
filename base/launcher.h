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

/* Ranks of this job on this node, or of its fullest node where no more is known; 0: nobody says. */
static inline int collx_launcher_local_ranks(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS",
                                        "PALS_LOCAL_SIZE", "SLURM_STEP_TASKS_PER_NODE"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        if (value && collx_launcher_largest(value) > 0)
            return collx_launcher_largest(value);
    }
    return 0;
}

#endif
