/* Memory that all ranks of a job share, whatever its MPI thinks of their nodes: MPICH 5 over
 * UCX, as Debian builds it, takes each rank of a node for a node of its own.
 */
#ifndef COLLX_BENCH_SHARED_H
#define COLLX_BENCH_SHARED_H

#include "hw/shm.h"

#include <mpi.h>
#include <unistd.h>

/* `size` bytes, zeroed; NULL, on all ranks, where some are on other nodes, or without memory.
 * Collective over MPI_COMM_WORLD, by these two functions of the MPI library.  The memory lasts as
 * long as the process. */
static inline void *shared_memory(size_t size, __typeof__(&MPI_Bcast) bcast,
                                  __typeof__(&MPI_Allreduce) allreduce)
{
    struct collx_shm_address address = {0};
    const size_t all = COLLX_LINE + size; /* the cookie's line, and ours */
    void *base = NULL;
    int rank, fd = -1, good, all_good;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0 && !collx_shm_create(all, &base, &fd) && !collx_shm_allocate(fd, all))
        address = collx_shm_tell(fd, base);
    bcast(&address, sizeof address, MPI_BYTE, 0, MPI_COMM_WORLD);
    good = address.cookie && (rank == 0 || !collx_shm_open(&address, all, 0, &base));
    allreduce(&good, &all_good, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (fd >= 0)
        close(fd);
    return all_good ? (char *)base + COLLX_LINE : NULL;
}

#endif
