#include "base/collectives.h"

#include <stddef.h>

const char *collx_kind_name(unsigned kind)
{
    static const char *const names[] = {
#define X(KIND, Name, Iname, word) #word,
        COLLX_COLLECTIVES(X)
#undef X
    };
    return kind < COLLX_KINDS ? names[kind] : NULL;
}

const char *collx_mpi_name(unsigned kind, unsigned form)
{
    static const char *const names[COLLX_KINDS][COLLX_FORMS] = {
#define X(KIND, Name, Iname, word)                                                                 \
    [COLLX_##KIND] = {"MPI_" #Name, "MPI_" #Iname, "MPI_" #Name "_init"},
        COLLX_COLLECTIVES(X)
#undef X
    };

    return kind < COLLX_KINDS && form < COLLX_FORMS ? names[kind][form] : "?";
}

const char *collx_op_name(unsigned op)
{
    static const char *const names[] = {
#define X(OP, word) #word,
        COLLX_OPS(X)
#undef X
    };
    return op < COLLX_OP_COUNT ? names[op] : NULL;
}
