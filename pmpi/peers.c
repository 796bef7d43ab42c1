#include "pmpi/peers.h"

int collx_peers_count(MPI_Comm comm)
{
    int size = 0, inter = 0;

    pmpi.Comm_test_inter(comm, &inter);
    if (!inter)
        return collx_peers_count_own(comm);
    pmpi.Comm_remote_size(comm, &size);
    return size;
}

int collx_peers_count_own(MPI_Comm comm)
{
    int size = 0;

    pmpi.Comm_size(comm, &size);
    return size;
}

static void count_neighbours(MPI_Comm comm, int *in, int *out)
{
    int kind = MPI_UNDEFINED, rank = 0, weighted = 0;

    *in = *out = 0;
    pmpi.Topo_test(comm, &kind);
    if (kind == MPI_CART) {
        pmpi.Cartdim_get(comm, out);
        *in = *out *= 2;
    } else if (kind == MPI_GRAPH) {
        pmpi.Comm_rank(comm, &rank);
        pmpi.Graph_neighbors_count(comm, rank, out);
        *in = *out;
    } else if (kind == MPI_DIST_GRAPH) {
        pmpi.Dist_graph_neighbors_count(comm, in, out, &weighted);
    }
}

int collx_peers_count_in(MPI_Comm comm)
{
    int in, out;

    count_neighbours(comm, &in, &out);
    return in;
}

int collx_peers_count_out(MPI_Comm comm)
{
    int in, out;

    count_neighbours(comm, &in, &out);
    return out;
}
