/* The contract between libcollx.so (the door, interpose/) and an adapter (pmpi/).
 *
 * The door exports the names of MPI and knows no MPI; an adapter is compiled for one MPI and
 * exports nothing but collx_adapter_open.  They meet here and nowhere else.
 */
#ifndef COLLX_DOOR_H
#define COLLX_DOOR_H

#include "base/collectives.h"

#include <stddef.h>

enum collx_entry {
#define ENTRY(Name) COLLX_ENTRY_##Name,
#include "base/entries.def"
#undef ENTRY
    COLLX_ENTRIES,
};

enum { COLLX_DOOR_VERSION = 4 };

struct collx_door {
    unsigned version; /* COLLX_DOOR_VERSION of the door */
    unsigned entries; /* COLLX_ENTRIES of the door */
    void *mpi;        /* dlopen handle of the MPI library that this process uses */
    /* "openmpi" or "mpich": which adapter knows the library, by what it says of itself.  NULL: none
     * does, and the user has named one. */
    const char *family;
    const char *dir; /* folder that libcollx.so was loaded from; its companions are there */
    /* The MPI library's own PMPI_X, by entry; NULL where this MPI has no such function. */
    void *const *real;
    /* MPI_X of a tool that was loaded before libcollx.so or behind it, by entry, which calls
     * PMPI_X; NULL: none has it. */
    void *const *tool;
    /* Where a call of PMPI_X goes, and of MPI_X unless another tool comes first.  Starts as a copy
     * of `real`; the adapter replaces what it wants to see. */
    void **route;
};

/* Called once, under a lock, at the first MPI call that passes the door; MPI may not have been
 * initialised yet.  Returns 0, or a negative errno value and a reason in `why`; then nothing in
 * `route` may have been touched, and the program runs as if collx were not there. */
typedef int collx_adapter_open_fn(const struct collx_door *door, char *why, size_t size);

#define COLLX_ADAPTER_OPEN "collx_adapter_open"

#endif
