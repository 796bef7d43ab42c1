/* Makes of an MPI library one of another release: it does not know a type that mpi.h has, and of
 * MPICH's it has an operation more, whose result is one int whatever the type.  Loaded like
 * wide_integers.c. */
#include "real.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef MPIX_C_FLOAT16
#define UNKNOWN MPIX_C_FLOAT16
#elif defined(MPICH) /* before 3.4 */
#define UNKNOWN MPI_CXX_BOOL
#else
#define UNKNOWN MPI_LOGICAL2
#endif

static void must_be_known(MPI_Datatype type)
{
    if (type != UNKNOWN)
        return;
    fputs("the library is asked about a type that it does not know\n", stderr);
    abort();
}

int PMPI_Type_size_x(MPI_Datatype type, MPI_Count *size)
{
    must_be_known(type);
    return ((int (*)(MPI_Datatype, MPI_Count *))real("PMPI_Type_size_x"))(type, size);
}

int PMPI_Type_get_extent(MPI_Datatype type, MPI_Aint *lb, MPI_Aint *extent)
{
    must_be_known(type);
    return REAL(PMPI_Type_get_extent)(type, lb, extent);
}

#ifdef MPICH
#ifndef MPIX_EQUAL /* since 4.1 */
#define MPIX_EQUAL ((MPI_Op)0x5800000f)
#endif

int PMPI_Allreduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op,
                   MPI_Comm comm)
{
    int bytes, error = MPI_SUCCESS;

    if (op != MPIX_EQUAL)
        return REAL(PMPI_Allreduce)(in, out, count, type, op, comm);
    MPI_Type_size(type, &bytes);
    bytes *= count;
    char *any = malloc((size_t)bytes), *all = malloc((size_t)bytes);
    if (!any || !all)
        abort();
    error = REAL(PMPI_Allreduce)(in, any, bytes, MPI_BYTE, MPI_BOR, comm);
    if (!error)
        error = REAL(PMPI_Allreduce)(in, all, bytes, MPI_BYTE, MPI_BAND, comm);
    *(int *)out = !memcmp(any, all, (size_t)bytes);
    free(any), free(all);
    return error;
}
#endif
