/* A window's life.  What MPI guarantees at each step is in docs/segments.md. */
#include "pmpi/rma_net.h"

#include "base/error.h"
#include "base/job.h"
#include "hw/shm.h"
#include "pmpi/agree.h"
#include "pmpi/lifetime.h"
#include "pmpi/messages.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Windows of this process.  The lock is never held across a call into MPI. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct collx_net *nets;

static void add(struct collx_net *net)
{
    pthread_mutex_lock(&lock);
    net->next = nets;
    nets = net;
    pthread_mutex_unlock(&lock);
}

static void drop(const struct collx_net *net)
{
    pthread_mutex_lock(&lock);
    struct collx_net **at = &nets;
    while (*at && *at != net)
        at = &(*at)->next;
    if (*at)
        *at = net->next;
    pthread_mutex_unlock(&lock);
}

/* Open MPI 4 looks no further when its first choice has no network for it.  And windows that
 * several processes of a node have share memory there whose name has the number of their
 * communicator, which another one has as well if none of its processes are the same: made at the
 * same time, both get the same memory (open-mpi/ompi#9492). */
#if defined(OPEN_MPI) && OMPI_MAJOR_VERSION < 5
#define OVER_TCP " (over TCP it needs mpirun --mca osc pt2pt)"
#define COLLX_WINDOWS_IN_TURN
#else
#define OVER_TCP ""
#endif

/* What each rank says after a step; all are combined by bitwise or. */
struct told {
    uint64_t none;   /* a leader has not got what this step was for */
    uint64_t failed; /* or cannot use it */
    uint64_t later;  /* or has to wait for others with it: all make this step again */
    uint64_t id;     /* from the first leader */
};
enum { TOLD_WORDS = sizeof(struct told) / sizeof(uint64_t) };

/* A window on its way.  All ranks go through the same steps, and agree after each: a leader that
 * stayed away from the next one would be waited for. */
struct opening {
    struct collx_comm *comm;
    const int *leaders;
    int count;
    size_t bytes;
    struct collx_net *net; /* NULL: this rank is no leader, or has no memory */
    bool speaks;           /* for the leaders on its node, of which there are several */
    int turn;              /* a descriptor, while it is theirs on that node; else negative */
    char *why;
    size_t why_size;
};

/* Of an MPI call. */
static void explain(struct opening *opening, const char *call, int error)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;

    pmpi.Error_string(error, text, &length);
    snprintf(opening->why, opening->why_size, "%s: %s", call, text);
}

static void begin(struct opening *opening, struct told *told)
{
    const struct collx_comm *comm = opening->comm;
    bool leads = false;

    for (int i = 0; i < opening->count; i++)
        leads = leads || opening->leaders[i] == comm->rank;
    if (leads)
        opening->net = calloc(1, sizeof *opening->net);
    if (opening->net) {
        opening->net->comm = MPI_COMM_NULL;
        opening->net->win = MPI_WIN_NULL;
    }
    /* A window lasts until MPI_COMM_WORLD ends, with which all end in the same order, if we hear of
     * that.  A session's communicator may go on after it, and MPI does not tell which one is a
     * session's. */
    const bool lasts = collx_world_is_known() && !collx_sessions_any();
    if (!lasts)
        snprintf(opening->why, opening->why_size,
                 "windows need MPI_COMM_WORLD, whose MPI_Init has not gone past collx, and that no "
                 "session is open; over=p2p needs neither");
    told->none = collx_messages_open(opening->comm) || !lasts || (leads && !opening->net);
    if (comm->rank == opening->leaders[0])
        told->id = collx_job_unique();
}

static int make_comm(struct collx_net *net, const struct collx_comm *comm, const int *leaders,
                     int count)
{
    MPI_Group all, group;
    int error = pmpi.Comm_group(comm->comm, &all);

    if (error)
        return error;
    error = pmpi.Group_incl(all, count, leaders, &group);
    if (!error) {
        error = pmpi.Comm_create_group(comm->routes.messages.comm, group, comm->routes.messages.tag,
                                       &net->comm);
        pmpi.Group_free(&group);
    }
    pmpi.Group_free(&all);
    if (error) {
        net->comm = MPI_COMM_NULL;
        return error;
    }
    pmpi.Comm_set_errhandler(net->comm, MPI_ERRORS_RETURN);
    return pmpi.Comm_rank(net->comm, &net->rank);
}

static void gather_leaders(struct opening *opening, struct told *told)
{
    int error = make_comm(opening->net, opening->comm, opening->leaders, opening->count);

    if (error)
        explain(opening, "MPI_Comm_create_group", error);
    told->none = error != 0;
}

#ifdef COLLX_WINDOWS_IN_TURN
/* By what MPI takes for a node. */
static void find_speaker(struct opening *opening, struct told *told)
{
    MPI_Comm here;
    int rank, ranks;
    int error =
        pmpi.Comm_split_type(opening->net->comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here);

    told->none = error != 0;
    if (error) {
        explain(opening, "MPI_Comm_split_type", error);
        return;
    }
    pmpi.Comm_rank(here, &rank);
    pmpi.Comm_size(here, &ranks);
    pmpi.Comm_free(&here);
    opening->speaks = rank == 0 && ranks > 1;
}

/* One of collx's windows at a time is made on a node.  Who held one node's turn and waited for
 * another's could wait for ever: it is all of them, or none. */
static void take_turn(struct opening *opening, struct told *told)
{
    if (!opening->speaks)
        return;
    told->later = !collx_job_first_here("window", &opening->turn);
    /* Where there is no descriptor to claim it with others would be first here as well. */
    told->none = !told->later && opening->turn < 0;
    if (told->none)
        snprintf(opening->why, opening->why_size,
                 "no file descriptor is left by which windows are made one at a time");
}
#endif

static void end_turn(struct opening *opening)
{
    if (opening->turn >= 0)
        close(opening->turn);
    opening->turn = -1;
}

/* For times that are not the same for two who are in each other's way. */
static void give_way(struct opening *opening)
{
    end_turn(opening);
    if (opening->speaks)
        usleep((useconds_t)(collx_job_unique() % 1000));
}

/* Whether loads of this process see what others put, without a call. */
static bool is_unified(MPI_Win win)
{
    int *model = NULL, found = 0;

    return !pmpi.Win_get_attr(win, MPI_WIN_MODEL, &model, &found) && found &&
           *model == MPI_WIN_UNIFIED;
}

static void lock_window(struct opening *opening)
{
    struct collx_net *net = opening->net;

    pmpi.Win_set_errhandler(net->win, MPI_ERRORS_RETURN);
    if (!is_unified(net->win)) {
        snprintf(opening->why, opening->why_size,
                 "windows of this MPI library are not unified with the memory of processes; "
                 "take over=p2p");
        return;
    }
    /* Nobody ever locks one alone, as MPI_MODE_NOCHECK demands. */
    int error = pmpi.Win_lock_all(MPI_MODE_NOCHECK, net->win);
    if (error)
        explain(opening, "MPI_Win_lock_all", error);
    net->locked = !error;
}

static void make_window(struct opening *opening, struct told *told)
{
    struct collx_net *net = opening->net;
    void *base;
    /* Nobody promises that it begins with a line.  Whole lines, as MPICH 4.0 puts into windows
     * whose sizes are no multiples of 16 beside the place, where it has laid them out in shared
     * memory. */
    const size_t all = collx_line_up(opening->bytes + COLLX_LINE);
    int error = pmpi.Win_allocate((MPI_Aint)all, 1, MPI_INFO_NULL, net->comm, &base, &net->win);

    if (error) {
        net->win = MPI_WIN_NULL;
        explain(opening, "MPI_Win_allocate" OVER_TCP, error);
    } else {
        net->local = (char *)collx_line_up((uintptr_t)base);
        net->first = (size_t)(net->local - (char *)base);
        net->bytes = opening->bytes;
        lock_window(opening);
        memset(base, 0, all);
        if (net->locked)
            pmpi.Win_sync(net->win);
    }
    told->none = error != 0;
    told->failed = !net->locked;
}

static uint32_t probe_of(int rank)
{
    return 0x636f6c00u + (uint32_t)rank;
}

/* Each leader puts a word into the next one's window, before anybody trusts that it gets there. */
static void send_probe(struct opening *opening, struct told *told)
{
    const struct collx_net *net = opening->net;
    const uint32_t probe = probe_of(net->rank);
    const int to = (net->rank + 1) % opening->count;
    int error = pmpi.Put(&probe, sizeof probe, MPI_BYTE, to, 0, sizeof probe, MPI_BYTE, net->win);
    int failed = pmpi.Win_flush(to, net->win);

    if (error || failed)
        explain(opening, "MPI_Put", error ? error : failed);
    told->failed = error || failed;
}

static void take_probe(struct opening *opening, struct told *told)
{
    const struct collx_net *net = opening->net;
    const int from = (net->rank + opening->count - 1) % opening->count;
    void *at = net->local - net->first;
    uint32_t probe;

    pmpi.Win_sync(net->win);
    memcpy(&probe, at, sizeof probe);
    memset(at, 0, sizeof probe);
    pmpi.Win_sync(net->win);
    told->failed = probe != probe_of(from);
    if (told->failed)
        snprintf(opening->why, opening->why_size,
                 "what is put into a window of this MPI library does not get there; take "
                 "over=p2p");
}

static void forget_window(struct collx_net *net)
{
    net->locked = false;
    net->win = MPI_WIN_NULL;
    net->comm = MPI_COMM_NULL;
}

/* Collective where all leaders have a window; where some have none, the others keep theirs: MPI
 * has no way to free it. */
static void free_window(struct collx_net *net, bool all_have)
{
    if (net->locked)
        pmpi.Win_unlock_all(net->win);
    if (net->win != MPI_WIN_NULL && all_have)
        pmpi.Win_free(&net->win);
    if (net->comm != MPI_COMM_NULL)
        pmpi.Comm_free(&net->comm);
    forget_window(net);
}

static void end(struct collx_comm *comm, bool all_have)
{
    struct collx_net *net = comm->rma;

    drop(net);
    free_window(net, all_have);
    comm->rma = net->older;
    free(net);
}

int collx_rma_open(struct collx_comm *comm, const int *leaders, int count, size_t bytes,
                   struct collx_seg_caps *caps, char *why, size_t size)
{
    static void (*const steps[])(struct opening *, struct told *) = {
        begin,        gather_leaders,
#ifdef COLLX_WINDOWS_IN_TURN
        find_speaker, take_turn,
#endif
        make_window,  send_probe,     take_probe,
    };
    const int keep = errno;
    struct opening opening = {
        .comm = comm,
        .leaders = leaders,
        .count = count,
        .bytes = bytes,
        .turn = -1,
        .why = why,
        .why_size = size,
    };
    struct told told = {0};
    uint64_t id = 0;
    int error = 0;

    snprintf(why, size, "another rank cannot make a window");
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i += !told.later) {
        told = (struct told){0};
        if (i == 0 || opening.net)
            steps[i](&opening, &told);
        error = collx_agree_any(comm, (uint64_t *)&told, TOLD_WORDS);
        id |= told.id;
        if (error || told.none || told.failed)
            break;
        if (told.later)
            give_way(&opening);
    }
    end_turn(&opening);
    *caps = collx_rma_caps;
    if (opening.net) {
        opening.net->older = comm->rma;
        comm->rma = opening.net;
        opening.net->id = id;
        add(opening.net);
        if (error || told.none || told.failed)
            end(comm, !error && !told.none);
    }
    errno = keep;
    return error ? error : told.none || told.failed ? COLLX_EUNFIT : 0;
}

void collx_rma_close(struct collx_comm *comm)
{
    while (comm->rma)
        end(comm, true);
}

/* All processes have the same order of windows: by their numbers.  That in which they were made is
 * not the same where threads make them. */
static struct collx_net *take_first(void)
{
    struct collx_net *first = NULL;

    pthread_mutex_lock(&lock);
    for (struct collx_net *net = nets; net; net = net->next)
        if (net->locked && (!first || net->id < first->id))
            first = net;
    pthread_mutex_unlock(&lock);
    return first;
}

void collx_rma_end(bool callable)
{
    struct collx_net *net;

    /* The lock may be held by a thread that the child has not got. */
    while (!collx_process_is_child() && (net = take_first())) {
        if (!callable)
            forget_window(net);
        else
            free_window(net, true);
    }
}
