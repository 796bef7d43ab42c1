#include "pmpi/segment.h"

#include "algorithms/crowd.h"
#include "base/error.h"
#include "base/launcher.h"
#include "base/options.h"
#include "hw/budget.h"
#include "pmpi/kept.h"
#include "pmpi/lifetime.h"
#include "pmpi/world.h"

#include <errno.h>
#include <pthread.h>
#include <unistd.h>

/* Of this process, over all its communicators. */
static struct collx_budget budget;
static struct collx_spares spares = COLLX_SPARES_INITIALIZER;

/* How many ranks share a node's memory with this one; too many rather than too few.  Processes of a
 * job may not have the same idea of it: each says for itself whether it has enough left. */
static int node_ranks(const struct collx_comm *comm)
{
    int ranks = collx_launcher_local_ranks();

    if (ranks == 0 && collx_world_up())
        pmpi.Comm_size(MPI_COMM_WORLD, &ranks);
    else if (ranks == 0) /* sessions alone and a launcher that does not tell: as a rule no more */
        ranks = (int)sysconf(_SC_NPROCESSORS_CONF);
    return ranks > comm->routes.node_ranks ? ranks : comm->routes.node_ranks;
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

static void unmap(void *segment, size_t size, int sharers)
{
    collx_shm_close(segment, size);
    collx_budget_give(&budget, collx_budget_part(size, sharers));
}

static void let_go(const struct collx_spare *spare)
{
    collx_kept_close(spare->with);
    if (collx_spare_let_go(spare->users))
        collx_shm_release(spare->base, spare->size);
    unmap(spare->base, spare->size, spare->sharers);
}

/* False: there is none. */
static bool drop_spare(bool any)
{
    struct collx_spare spare;
    const bool is = collx_spares_drop(&spares, any, &spare);

    if (is)
        let_go(&spare);
    return is;
}

/* Before there is a segment, so that two threads that set communicators up do not both take what
 * is enough for one. */
static int reserve(struct collx_comm *comm, size_t size, uint64_t layout)
{
    int error;

    if (size > (size_t)collx_option_number(COLLX_OPTION_MEMORY_COMM))
        return -E2BIG;
    do
        error = collx_budget_take(&budget, collx_budget_part(size, comm->routes.node_ranks),
                                  collx_segment_share(comm));
    while (error && drop_spare(true));
    comm->routes.segment_size = error ? 0 : size;
    comm->routes.segment_layout = layout;
    return error;
}

static void give_back(struct collx_comm *comm)
{
    collx_budget_give(&budget,
                      collx_budget_part(comm->routes.segment_size, comm->routes.node_ranks));
    comm->routes.segment_size = 0;
}

void collx_segments_tell(uint64_t spare[COLLX_SPARES])
{
    while (drop_spare(false))
        ;
    collx_spares_tell(&spares, spare);
}

static void use(struct collx_comm *comm, const struct collx_spare *spare)
{
    collx_kept_close(spare->with);
    comm->routes.segment = spare->base;
    comm->routes.segment_size = spare->size;
    comm->routes.segment_layout = spare->layout;
}

bool collx_segment_reuse(struct collx_comm *comm, size_t size, uint64_t layout,
                         const uint64_t spare[COLLX_SPARES], struct collx_segment_address *address)
{
    const int sharers = comm->routes.node_ranks;
    struct collx_spare wanted = {.size = size, .layout = layout, .sharers = sharers};
    /* Routes are worth more than it takes to make a segment, as long as there is room for both. */
    const bool is_short =
        collx_spares_are_full(&spares) ||
        collx_budget_taken(&budget) + collx_budget_part(size, sharers) > collx_segment_share(comm);

    if (!collx_spares_claim(&spares, spare, is_short, &wanted))
        return false;
    use(comm, &wanted);
    address->at = (struct collx_shm_address){.pid = getpid(), .fd = -1, .cookie = wanted.cookie};
    struct collx_crowd *crowd = comm->routes.segment;
    crowd->cookie = collx_shm_cookie();
    return true;
}

int collx_segment_make(struct collx_comm *comm, size_t size, uint64_t layout)
{
    int error = reserve(comm, size, layout);

    if (error)
        return error;
    error = collx_shm_create(size, &comm->routes.segment, &comm->segment_fd);
    if (error)
        give_back(comm);
    return error;
}

int collx_segment_allocate(struct collx_comm *comm, struct collx_segment_address *address)
{
    int error = collx_shm_allocate(comm->segment_fd, comm->routes.segment_size);

    if (error) {
        collx_segment_opened(comm);
        collx_segment_close(comm);
        return error;
    }
    struct collx_crowd *crowd = comm->routes.segment;
    collx_spare_begin(&crowd->users, comm->routes.node_ranks);
    address->at = collx_shm_tell(comm->segment_fd, &crowd->cookie);
    return 0;
}

static int take_spare(struct collx_comm *comm, uint64_t cookie)
{
    struct collx_spare spare;

    if (!collx_spares_take(&spares, cookie, &spare))
        return COLLX_EGONE;
    use(comm, &spare);
    return 0;
}

int collx_segment_open(struct collx_comm *comm, size_t size, uint64_t layout,
                       const struct collx_segment_address *address)
{
    if (address->at.fd < 0)
        return take_spare(comm, address->at.cookie);
    int error = reserve(comm, size, layout);
    if (error)
        return error;
    error = collx_shm_open(&address->at, size, offsetof(struct collx_crowd, cookie),
                           &comm->routes.segment);
    if (error)
        give_back(comm);
    return error;
}

void collx_segment_opened(struct collx_comm *comm)
{
    if (comm->segment_fd > 0)
        close(comm->segment_fd);
    comm->segment_fd = 0;
}

void collx_segment_close(struct collx_comm *comm)
{
    if (comm->routes.segment)
        unmap(comm->routes.segment, comm->routes.segment_size, comm->routes.node_ranks);
    comm->routes.segment = NULL;
    comm->routes.segment_size = 0;
}

void collx_segment_put_back(const struct collx_spare *spare)
{
    struct collx_spare over;

    if (!collx_spares_keep(&spares, spare, &over))
        let_go(&over);
}

void collx_segment_keep(struct collx_routes *routes, struct collx_kept *with)
{
    struct collx_crowd *crowd = routes->segment;

    routes->segment = NULL;
    if (!crowd)
        return;
    const struct collx_spare spare = {
        .base = crowd,
        .users = &crowd->users,
        .size = routes->segment_size,
        .sharers = routes->node_ranks,
        .layout = routes->segment_layout,
        .cookie = crowd->cookie,
        .with = with,
    };
    routes->segment_size = 0;
    if (collx_spare_leave(&crowd->users))
        collx_segment_put_back(&spare);
    else
        let_go(&spare);
}

bool collx_segment_find(bool (*is)(const struct collx_spare *spare, const void *context),
                        const void *context, struct collx_spare *spare)
{
    return collx_spares_find(&spares, is, context, spare);
}

void collx_segments_finish(void)
{
    /* The lock may be held by a thread that the child has not got. */
    while (!collx_process_is_child() && drop_spare(true))
        ;
}
