#include "pmpi/segment.h"

#include "base/clock.h"
#include "base/options.h"
#include "hw/shm.h"
#include "pmpi/crowd.h"

#include <errno.h>
#include <sys/random.h>
#include <unistd.h>

/* Bytes that this process shares at the moment. */
static atomic_size_t shared;

static void take(struct collx_comm *comm, size_t size)
{
    comm->segment_size = size;
    atomic_fetch_add(&shared, size);
}

int collx_segment_make(struct collx_comm *comm, size_t size, struct collx_segment_address *address)
{
    if (atomic_load(&shared) + size > (size_t)collx_option_number(COLLX_OPTION_MEMORY))
        return -EDQUOT;
    int error = collx_shm_create(size, &comm->segment, &comm->segment_fd);
    if (error)
        return error;
    take(comm, size);

    struct collx_crowd *crowd = comm->segment;
    if (getrandom(&crowd->cookie, sizeof crowd->cookie, GRND_NONBLOCK) < 0)
        crowd->cookie = collx_clock_ns();
    *address = (struct collx_segment_address){
        .pid = getpid(), .fd = comm->segment_fd, .cookie = crowd->cookie};
    return 0;
}

int collx_segment_open(struct collx_comm *comm, size_t size,
                       const struct collx_segment_address *address)
{
    int error = collx_shm_open(address->pid, address->fd, size, &comm->segment);

    if (error)
        return error;
    /* Another process may have that number here, if rank 0 is not where we think it is. */
    if (((struct collx_crowd *)comm->segment)->cookie != address->cookie) {
        collx_shm_close(comm->segment, size);
        comm->segment = NULL;
        return -ESTALE;
    }
    take(comm, size);
    return 0;
}

void collx_segment_opened(struct collx_comm *comm)
{
    if (comm->rank == 0 && comm->segment)
        close(comm->segment_fd);
}

void collx_segment_close(struct collx_comm *comm)
{
    if (!comm->segment)
        return;
    atomic_fetch_sub(&shared, comm->segment_size);
    collx_shm_close(comm->segment, comm->segment_size);
    comm->segment = NULL;
}
