/* Tells the program that MPI_Session_finalize has been called, and leaves it to it when that goes
 * on, with collx and without.  Loaded like wide_integers.c; what it stands before is there from
 * version 4 of MPI on. */
#include "real.h"

#include <mpi.h>

#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
int PMPI_Session_finalize(MPI_Session *session)
{
    void (*session_ends)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "session_ends");

    session_ends();
    return REAL(PMPI_Session_finalize)(session);
}

int MPI_Session_finalize(MPI_Session *session)
{
    return PMPI_Session_finalize(session);
}
#endif
