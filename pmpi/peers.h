/* With how many others a rank has to do in a collective: how long its arrays of counts are. */
#ifndef COLLX_PEERS_H
#define COLLX_PEERS_H

#include "pmpi/pmpi.h"

/* All ranks of the communicator, of an intercommunicator those of the other group. */
int collx_peers_count(MPI_Comm comm);
/* All of this rank's own group. */
int collx_peers_count_own(MPI_Comm comm);
/* Its neighbours in the communicator's topology, those it receives from and those it sends to; none
 * where there is no topology. */
int collx_peers_count_in(MPI_Comm comm);
int collx_peers_count_out(MPI_Comm comm);

#endif
