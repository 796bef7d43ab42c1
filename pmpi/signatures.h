/* The parameters of each collective that has counts, and the same as arguments, by its KIND of
 * base/collectives.h.
 *
 * COLLX_PARAMETERS_<KIND>(N, D): N is the type of counts and D of displacements: int and int, and
 * MPI_Count and MPI_Aint of the functions for large counts.  What a form has beyond that comes
 * after them. */
#ifndef COLLX_SIGNATURES_H
#define COLLX_SIGNATURES_H

/* clang-format off */
#define COLLX_PARAMETERS_BCAST(N, D) void *buffer, N count, MPI_Datatype type, int root, MPI_Comm comm
#define COLLX_ARGUMENTS_BCAST buffer, count, type, root, comm

#define COLLX_PARAMETERS_REDUCE(N, D) const void *sendbuf, void *recvbuf, N count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm
#define COLLX_ARGUMENTS_REDUCE sendbuf, recvbuf, count, type, op, root, comm

#define COLLX_PARAMETERS_ALLREDUCE(N, D) const void *sendbuf, void *recvbuf, N count, MPI_Datatype type, MPI_Op op, MPI_Comm comm
#define COLLX_ARGUMENTS_ALLREDUCE sendbuf, recvbuf, count, type, op, comm
#define COLLX_PARAMETERS_SCAN COLLX_PARAMETERS_ALLREDUCE
#define COLLX_ARGUMENTS_SCAN COLLX_ARGUMENTS_ALLREDUCE
#define COLLX_PARAMETERS_EXSCAN COLLX_PARAMETERS_ALLREDUCE
#define COLLX_ARGUMENTS_EXSCAN COLLX_ARGUMENTS_ALLREDUCE

#define COLLX_PARAMETERS_REDUCE_SCATTER_BLOCK(N, D) const void *sendbuf, void *recvbuf, N recvcount, MPI_Datatype type, MPI_Op op, MPI_Comm comm
#define COLLX_ARGUMENTS_REDUCE_SCATTER_BLOCK sendbuf, recvbuf, recvcount, type, op, comm

#define COLLX_PARAMETERS_REDUCE_SCATTER(N, D) const void *sendbuf, void *recvbuf, const N *recvcounts, MPI_Datatype type, MPI_Op op, MPI_Comm comm
#define COLLX_ARGUMENTS_REDUCE_SCATTER sendbuf, recvbuf, recvcounts, type, op, comm

#define COLLX_PARAMETERS_GATHER(N, D) const void *sendbuf, N sendcount, MPI_Datatype sendtype, void *recvbuf, N recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm
#define COLLX_ARGUMENTS_GATHER sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm
#define COLLX_PARAMETERS_SCATTER COLLX_PARAMETERS_GATHER
#define COLLX_ARGUMENTS_SCATTER COLLX_ARGUMENTS_GATHER

#define COLLX_PARAMETERS_GATHERV(N, D) const void *sendbuf, N sendcount, MPI_Datatype sendtype, void *recvbuf, const N *recvcounts, const D *displs, MPI_Datatype recvtype, int root, MPI_Comm comm
#define COLLX_ARGUMENTS_GATHERV sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, comm

#define COLLX_PARAMETERS_SCATTERV(N, D) const void *sendbuf, const N *sendcounts, const D *displs, MPI_Datatype sendtype, void *recvbuf, N recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm
#define COLLX_ARGUMENTS_SCATTERV sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root, comm

#define COLLX_PARAMETERS_ALLGATHER(N, D) const void *sendbuf, N sendcount, MPI_Datatype sendtype, void *recvbuf, N recvcount, MPI_Datatype recvtype, MPI_Comm comm
#define COLLX_ARGUMENTS_ALLGATHER sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm
#define COLLX_PARAMETERS_ALLTOALL COLLX_PARAMETERS_ALLGATHER
#define COLLX_ARGUMENTS_ALLTOALL COLLX_ARGUMENTS_ALLGATHER
#define COLLX_PARAMETERS_NEIGHBOR_ALLGATHER COLLX_PARAMETERS_ALLGATHER
#define COLLX_ARGUMENTS_NEIGHBOR_ALLGATHER COLLX_ARGUMENTS_ALLGATHER
#define COLLX_PARAMETERS_NEIGHBOR_ALLTOALL COLLX_PARAMETERS_ALLGATHER
#define COLLX_ARGUMENTS_NEIGHBOR_ALLTOALL COLLX_ARGUMENTS_ALLGATHER

#define COLLX_PARAMETERS_ALLGATHERV(N, D) const void *sendbuf, N sendcount, MPI_Datatype sendtype, void *recvbuf, const N *recvcounts, const D *displs, MPI_Datatype recvtype, MPI_Comm comm
#define COLLX_ARGUMENTS_ALLGATHERV sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm
#define COLLX_PARAMETERS_NEIGHBOR_ALLGATHERV COLLX_PARAMETERS_ALLGATHERV
#define COLLX_ARGUMENTS_NEIGHBOR_ALLGATHERV COLLX_ARGUMENTS_ALLGATHERV

#define COLLX_PARAMETERS_ALLTOALLV(N, D) const void *sendbuf, const N *sendcounts, const D *sdispls, MPI_Datatype sendtype, void *recvbuf, const N *recvcounts, const D *rdispls, MPI_Datatype recvtype, MPI_Comm comm
#define COLLX_ARGUMENTS_ALLTOALLV sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm
#define COLLX_PARAMETERS_NEIGHBOR_ALLTOALLV COLLX_PARAMETERS_ALLTOALLV
#define COLLX_ARGUMENTS_NEIGHBOR_ALLTOALLV COLLX_ARGUMENTS_ALLTOALLV

#define COLLX_PARAMETERS_ALLTOALLW(N, D) const void *sendbuf, const N *sendcounts, const D *sdispls, const MPI_Datatype *sendtypes, void *recvbuf, const N *recvcounts, const D *rdispls, const MPI_Datatype *recvtypes, MPI_Comm comm
#define COLLX_ARGUMENTS_ALLTOALLW sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm
/* Displacements of bytes: MPI_Aint even where counts are int. */
#define COLLX_PARAMETERS_NEIGHBOR_ALLTOALLW(N, D) COLLX_PARAMETERS_ALLTOALLW(N, MPI_Aint)
#define COLLX_ARGUMENTS_NEIGHBOR_ALLTOALLW COLLX_ARGUMENTS_ALLTOALLW
/* clang-format on */

#endif
