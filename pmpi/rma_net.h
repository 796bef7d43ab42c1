/* What the two halves of the rma driver share: the window's life and its use. */
#ifndef COLLX_RMA_NET_H
#define COLLX_RMA_NET_H

#include "pmpi/rma.h"

/* A segment of this process; there is nothing to say of one that its window does not say. */
struct collx_export {
    struct collx_net *net;
};

struct collx_net {
    MPI_Comm comm; /* of the leaders */
    MPI_Win win;
    bool locked;         /* it can be stored through */
    char *local;         /* the window's memory on this process, from a line's begin on */
    size_t first;        /* where that is in the window; each process has its own */
    size_t bytes, taken; /* by segments */
    uint64_t id;         /* equal on all leaders, unlike that of any other window */
    int rank;            /* in comm */
    struct collx_export made;
    struct collx_net *next;  /* of all */
    struct collx_net *older; /* of the communicator */
};

extern const struct collx_seg_caps collx_rma_caps;

#endif
