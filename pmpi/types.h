/* What the adapter has to know about datatypes and operations, found by handle. */
#ifndef COLLX_TYPES_H
#define COLLX_TYPES_H

#include "base/call.h"
#include "pmpi/pmpi.h"

struct collx_datatype {
    uintptr_t handle;
    MPI_Count size;  /* bytes of its type signature */
    uint32_t ops;    /* predefined operations that MPI allows on it: 1 << enum collx_op */
    uint8_t elem;    /* enum collx_elem */
    bool contiguous; /* elements follow each other without holes, in type-map order */
    bool extension;  /* not in the standard: the library may have the type and no operation on it */
};

/* Learn the names of the predefined types.  Called once, under the lock of pmpi/comm.c. */
void collx_types_init(void);

/* Facts about a predefined type, or NULL.  MPI must be initialised. */
const struct collx_datatype *collx_datatype_predefined(MPI_Datatype type);

/* Facts about any type, in *type.  False if it is none that may be used for communication. */
bool collx_datatype_derived(MPI_Datatype datatype, struct collx_datatype *type);

/* Whether the library refuses to reduce from a buffer into the same one.  It may be told not to
 * look, as by Open MPI's mpi_param_check=0 or MPICH's MPIR_CVAR_COLL_ALIAS_CHECK=0, or have been
 * built so. */
bool collx_same_buffers_refused(void);

/* Whether the library has that operation on a type that is an extension. */
bool collx_datatype_asked(const struct collx_datatype *type, MPI_Op op);

/* Whether this predefined operation may be used on a type that collx_datatype_derived() knows, as
 * on those that MPI_Type_create_f90_real and its like make; then its elements are added.
 * Other ranks may have the predefined type that is the same to MPI. */
bool collx_datatype_of_kind(struct collx_datatype *type, MPI_Op op);

/* Whether this predefined operation, which is of that kind, may be used on that type. */
static inline bool collx_datatype_allows(const struct collx_datatype *type, enum collx_op kind,
                                         MPI_Op op)
{
    return type->ops >> kind & 1 && (!type->extension || collx_datatype_asked(type, op));
}

/* NONE for MPI_OP_NULL and what this release of collx does not know, USER for one that a user
 * made. */
enum collx_op collx_op_kind(MPI_Op op);

#endif
