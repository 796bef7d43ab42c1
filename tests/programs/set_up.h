/* As much use of a communicator as makes collx set it up. */
#ifndef COLLX_TESTS_SET_UP_H
#define COLLX_TESTS_SET_UP_H

#include <mpi.h>

static inline void use_until_set_up(MPI_Comm comm)
{
    static _Thread_local char much[1 << 20];

    MPI_Bcast(much, sizeof much, MPI_BYTE, 0, comm);
    for (int call = 1; call < 16; call++)
        MPI_Barrier(comm);
}

#endif
