#include "pmpi/segment.h"

#include "algorithms/crowd.h"
#include "base/launcher.h"
#include "base/options.h"
#include "hw/budget.h"

#include <errno.h>
#include <pthread.h>
#include <unistd.h>

/* Of this process, over all its communicators. */
static struct collx_budget budget;

/* How many ranks share a node's memory with this one; too many rather than too few.  Processes of a
 * job may not have the same idea of it: each says for itself whether it has enough left. */
static int node_ranks(const struct collx_comm *comm)
{
    int ranks = collx_launcher_local_ranks();

    if (ranks == 0 && collx_world_up())
        pmpi.Comm_size(MPI_COMM_WORLD, &ranks);
    else if (ranks == 0) /* sessions alone and a launcher that does not tell: as a rule no more */
        ranks = (int)sysconf(_SC_NPROCESSORS_CONF);
    return ranks > comm->node_ranks ? ranks : comm->node_ranks;
}

/* Of the option's initial value.  Found once: a machine may have thousands of mounts, and a job
 * thousands of communicators. */
static int64_t allowed;
static pthread_once_t found = PTHREAD_ONCE_INIT;

static void find_allowed(void)
{
    allowed = collx_budget_allowed("", collx_option_describe(COLLX_OPTION_MEMORY)->initial);
}

size_t collx_segment_share(const struct collx_comm *comm)
{
    int64_t memory = collx_option_number(COLLX_OPTION_MEMORY);

    /* Whoever has set it knows what a cgroup has for it. */
    if (collx_option_origin(COLLX_OPTION_MEMORY) == COLLX_FROM_DEFAULT) {
        pthread_once(&found, find_allowed);
        memory = allowed;
    }
    return (size_t)memory / (size_t)node_ranks(comm);
}

size_t collx_segments_taken(void)
{
    return collx_budget_taken(&budget);
}

/* Before there is a segment, so that two threads that set communicators up do not both take what
 * is enough for one. */
static int reserve(struct collx_comm *comm, size_t size)
{
    if (size > (size_t)collx_option_number(COLLX_OPTION_MEMORY_COMM))
        return -E2BIG;
    int error = collx_budget_take(&budget, collx_budget_part(size, comm->node_ranks),
                                  collx_segment_share(comm));
    if (!error)
        comm->segment_size = size;
    return error;
}

static void give_back(struct collx_comm *comm)
{
    collx_budget_give(&budget, collx_budget_part(comm->segment_size, comm->node_ranks));
    comm->segment_size = 0;
}

int collx_segment_make(struct collx_comm *comm, size_t size)
{
    int error = reserve(comm, size);

    if (error)
        return error;
    error = collx_shm_create(size, &comm->segment, &comm->segment_fd);
    if (error)
        give_back(comm);
    return error;
}

int collx_segment_allocate(struct collx_comm *comm, struct collx_segment_address *address)
{
    int error = collx_shm_allocate(comm->segment_fd, comm->segment_size);

    if (error) {
        close(comm->segment_fd);
        collx_segment_close(comm);
        return error;
    }
    struct collx_crowd *crowd = comm->segment;
    address->at = collx_shm_tell(comm->segment_fd, &crowd->cookie);
    return 0;
}

int collx_segment_open(struct collx_comm *comm, size_t size,
                       const struct collx_segment_address *address)
{
    int error = reserve(comm, size);

    if (error)
        return error;
    error =
        collx_shm_open(&address->at, size, offsetof(struct collx_crowd, cookie), &comm->segment);
    if (error)
        give_back(comm);
    return error;
}

void collx_segment_opened(struct collx_comm *comm)
{
    if (comm->rank == comm->leader && comm->segment)
        close(comm->segment_fd);
}

void collx_segment_close(struct collx_comm *comm)
{
    if (!comm->segment)
        return;
    collx_shm_close(comm->segment, comm->segment_size);
    comm->segment = NULL;
    give_back(comm);
}
