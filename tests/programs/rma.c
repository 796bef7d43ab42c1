/* The rules of hw/segment.h with MPI's windows, between ranks wherever they are.
 *
 * usage: rma CASE [ROUNDS]: "rules", what is promised; "apart", some make windows while others make
 * theirs; "refused", windows cannot be made here; "lost", a rank cannot use its window, and
 * "lost-window", a rank has none.  Prints "good" at its end. */
#include "tests/end_well.h"
#include "tests/programs/cases.h"
#include "tests/programs/check.h"

#include "base/error.h"
#include "pmpi/lifetime.h"
#include "pmpi/progress.h"
#include "pmpi/rma.h"

#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>

enum { LINES = 64, LONG = 300000, WHY = 512 };

static const struct collx_seg_ops *const ops = &collx_segment_rma;

static MPI_Comm everybody = MPI_COMM_WORLD;
static int rank, size; /* in `everybody` */
static uint32_t rounds = 300;

/* A segment of this rank, and those of all ranks in the group. */
struct party {
    struct collx_comm *comm;
    struct collx_net *net;
    struct collx_seg_caps caps;
    int rank, size; /* rank -1: not of the group */
    size_t bytes;
    struct collx_export *own;
    char *local;
    struct collx_remote **remote; /* [size] */
    uint8_t *state;               /* [size] */
};

/* A communicator of the program's own with collx's state on it. */
static struct collx_comm *new_comm(void)
{
    MPI_Comm comm;

    MPI_Comm_dup(everybody, &comm);
    struct collx_comm *state = collx_comm_add(comm);
    state->routes.team = calloc(1, sizeof *state->routes.team);
    state->routes.team->name = state->label;
    return state;
}

static void free_comm(struct collx_comm *state)
{
    MPI_Comm comm = state->comm;

    MPI_Comm_free(&comm); /* and the window with it */
}

/* Every `stride`th rank. */
static int open_net(struct party *party, int stride, size_t bytes, char *why)
{
    int leaders[64];

    *party = (struct party){.comm = new_comm(), .rank = -1, .bytes = bytes};
    for (int i = 0; i < size; i += stride) {
        if (i == rank)
            party->rank = party->size;
        leaders[party->size++] = i;
    }
    int error =
        collx_rma_open(party->comm, leaders, party->size, 2 * bytes, &party->caps, why, WHY);
    party->net = party->comm->rma;
    return error;
}

static void open_party(struct party *party, int stride, size_t bytes)
{
    char why[WHY] = "";
    struct collx_seg_address own = {{0}}, *all = calloc((size_t)size, sizeof own);
    int error = open_net(party, stride, bytes, why);

    if (error)
        fprintf(stderr, "rank %d: %d: %s\n", rank, error, why);
    CHECK(!error);
    CHECK((party->net != NULL) == (party->rank >= 0));
    if (party->net)
        CHECK(!ops->make(party->net, bytes, &party->own, (void **)&party->local, &own, why, WHY));
    MPI_Allgather(&own, sizeof own, MPI_BYTE, all, sizeof own, MPI_BYTE, party->comm->comm);
    party->remote = calloc((size_t)party->size, sizeof(struct collx_remote *));
    party->state = calloc((size_t)party->size, 1);
    for (int i = 0; party->net && i < party->size; i++)
        CHECK(!collx_seg_connect(ops, party->net, &all[i * stride], bytes, &party->remote[i], 0,
                                 NULL, NULL, why, WHY));
    for (size_t i = 0; party->net && i < bytes; i++)
        CHECK(!party->local[i]);
    MPI_Barrier(party->comm->comm);
    free(all);
}

static void close_party(struct party *party)
{
    for (int i = 0; party->net && i < party->size; i++)
        ops->disconnect(party->remote[i]);
    MPI_Barrier(party->comm->comm);
    if (party->net) {
        ops->unmake(party->own);
        ops->close(party->net);
    }
    free(party->remote);
    free(party->state);
}

static size_t flag(const struct party *party, int line)
{
    return collx_seg_flag((size_t)line, party->caps.line);
}

/* All that was stored to everybody. */
static void check(struct party *party)
{
    CHECK(ops->check(party->net, party->remote, (unsigned)party->size, party->state) == 0);
    for (int i = 0; i < party->size; i++)
        CHECK(party->state[i] == COLLX_SEG_ARRIVED);
}

/* Nothing that is read meanwhile may be ahead of what has been written. */
static void await(struct party *party, int line, uint32_t epoch, uint32_t ahead)
{
    uint32_t seen;

    while (!collx_seg_reached(seen = collx_seg_read(party->local, flag(party, line)), epoch)) {
        CHECK(collx_seg_reached(ahead, seen));
        ops->progress(party->net);
        sched_yield();
    }
    CHECK(collx_seg_reached(ahead, seen));
}

static void barrier(struct party *party, uint32_t epoch, uint32_t step)
{
    for (int i = 0; i < party->size; i++)
        ops->store(party->remote[i], flag(party, party->rank), epoch);
    check(party);
    for (int i = 0; i < party->size; i++)
        await(party, i, epoch, epoch + step);
}

/* Epochs that carry into each of a flag's bytes, and beyond the last one. */
static void try_barriers(void)
{
    static const uint32_t middle[] = {1 << 8, 1 << 16, 1 << 24, 0x80000000, 0};
    struct party party;

    open_party(&party, 1, LINES * 128);
    for (size_t i = 0; i < sizeof middle / sizeof *middle; i++) {
        /* Nobody stores before all are where this begins. */
        for (int line = 0; line < size; line++)
            *(uint32_t *)(party.local + flag(&party, line)) = middle[i] - rounds - 1;
        MPI_Barrier(party.comm->comm);
        for (uint32_t epoch = middle[i] - rounds; epoch != middle[i] + rounds; epoch++)
            barrier(&party, epoch, 1);
        MPI_Barrier(party.comm->comm);
    }
    /* And where several bytes change at once. */
    for (uint32_t i = 0, epoch = rounds, step = 0x123457; i < rounds; i++, epoch += step)
        barrier(&party, epoch + step, step);
    close_party(&party);
    free_comm(party.comm);
}

static uint32_t value(int from, uint32_t epoch, size_t index)
{
    return epoch * 1000003u + (uint32_t)from * 769u + (uint32_t)index;
}

/* Data that is checked before its flag: a line, or a long piece, of each for each. */
static void try_data(size_t bytes, uint32_t times)
{
    const size_t words = bytes / 4;
    struct party party;
    uint32_t *data = malloc(bytes);

    open_party(&party, 1, (size_t)size * (bytes + 128) + 128);
    const size_t room = (bytes + party.caps.line - 1) / party.caps.line;
    for (uint32_t epoch = 1; epoch <= times; epoch++) {
        size_t at = ((size_t)size + (size_t)party.rank * room) * party.caps.line;
        for (size_t i = 0; i < words; i++)
            data[i] = value(party.rank, epoch, i);
        for (int i = 0; i < party.size; i++)
            ops->copy(party.remote[i], at, data, bytes);
        memset(data, 0, bytes);
        check(&party);
        barrier(&party, 2 * epoch - 1, 1);
        for (int from = 0; from < party.size; from++) {
            at = ((size_t)size + (size_t)from * room) * party.caps.line;
            for (size_t i = 0; i < words; i++)
                CHECK(collx_seg_read(party.local, at + 4 * i) == value(from, epoch, i));
        }
        /* All have read it. */
        barrier(&party, 2 * epoch, 1);
    }
    free(data);
    close_party(&party);
    free_comm(party.comm);
}

/* One check a round, for the data of this one and the flag of the last one: from the first rank to
 * all others, which say when they have read it. */
static void try_pipeline(void)
{
    enum { SLOTS = 4, WORDS = 100 };
    struct party party;

    open_party(&party, 1, (SLOTS * 4 + 1 + (size_t)size) * 128);
    const int said = SLOTS * 4;
    for (uint32_t epoch = 1; epoch <= rounds + 1; epoch++) {
        size_t slot = epoch % SLOTS * 4 * party.caps.line;
        if (party.rank == 0) {
            for (int i = 1; epoch > SLOTS && i < party.size; i++)
                await(&party, said + i, epoch - SLOTS, epoch);
            for (int to = 1; to < party.size; to++) {
                uint32_t data[WORDS];
                for (size_t i = 0; i < WORDS; i++)
                    data[i] = value(to, epoch, i);
                ops->copy(party.remote[to], slot, data, sizeof data);
                ops->store(party.remote[to], flag(&party, said), epoch - 1);
            }
            check(&party);
        } else if (epoch <= rounds) {
            await(&party, said, epoch, rounds);
            for (size_t i = 0; i < WORDS; i++)
                CHECK(collx_seg_read(party.local, slot + 4 * i) == value(party.rank, epoch, i));
            ops->store(party.remote[0], flag(&party, said + party.rank), epoch);
            CHECK(!ops->check(party.net, party.remote, 1, party.state));
        }
    }
    close_party(&party);
    free_comm(party.comm);
}

/* Some ranks alone have a window; windows come and go; a store may be left unchecked. */
static void try_groups(void)
{
    struct party party;

    for (int i = 0; i < 10; i++) {
        open_party(&party, 1 + i % 3, 1024);
        for (uint32_t epoch = 1; party.net && epoch < 10; epoch++)
            barrier(&party, epoch, 1);
        if (party.net)
            ops->store(party.remote[0], 0, 1);
        close_party(&party);
        free_comm(party.comm);
    }
}

static void try_mistakes(void)
{
    struct party party;
    struct collx_export *made;
    struct collx_remote *remote;
    struct collx_seg_address address;
    char why[WHY] = "";
    void *local;

    open_party(&party, 1, 1024);
    CHECK(!ops->make(party.net, 1024, &made, &local, &address, why, WHY));
    CHECK((char *)local != party.local);
    ops->unmake(made);
    CHECK(ops->make(party.net, 1, &made, &local, &address, why, WHY) == -ENOSPC);
    CHECK(strstr(why, "no 1 left") && !made);
    address.word[1]++;
    CHECK(ops->connect(party.net, &address, 1024, &remote, why, WHY) == -EINVAL && !remote);
    close_party(&party);
    /* This one is still there when MPI ends. */
}

/* A rank that fails for a reason of its own, behind what it has to do with the others for it. */
static int lose_window(MPI_Aint bytes, int unit, MPI_Info info, MPI_Comm comm, void *base,
                       MPI_Win *win)
{
    int error = PMPI_Win_allocate(bytes, unit, info, comm, base, win);

    return error ? error : MPI_ERR_NO_MEM;
}

static int lose_comm(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *new)
{
    int error = PMPI_Comm_create_group(comm, group, tag, new);

    return error ? error : MPI_ERR_OTHER;
}

static int lose_model(MPI_Win win, int key, void *value, int *found)
{
    (void)win, (void)key, (void)value;
    *found = 0;
    return MPI_SUCCESS;
}

static void expect_refusal(const char *words, bool here)
{
    struct party party;
    char why[WHY] = "";

    CHECK(open_net(&party, 1, 1024, why) == COLLX_EUNFIT);
    CHECK(!party.net);
    CHECK(strstr(why, here ? words : "another rank"));
    free_comm(party.comm);
}

static void try_lost_window(void)
{
    bool here = rank == size - 1;

    pmpi.Win_allocate = here ? lose_window : PMPI_Win_allocate;
    expect_refusal("MPI_Win_allocate", here);
    pmpi.Win_allocate = PMPI_Win_allocate;
    try_groups();
}

static void try_losses(void)
{
    bool here = rank == size - 1;

    pmpi.Comm_create_group = here ? lose_comm : PMPI_Comm_create_group;
    expect_refusal("MPI_Comm_create_group: ", here);
    pmpi.Comm_create_group = PMPI_Comm_create_group;
    pmpi.Win_get_attr = here ? lose_model : PMPI_Win_get_attr;
    expect_refusal("not unified", here);
    pmpi.Win_get_attr = PMPI_Win_get_attr;
#if defined(OPEN_MPI) && OMPI_MAJOR_VERSION < 5
    /* By which the first of a node, where all are here, holds the others off. */
    here = rank == 0;
    struct rlimit all, none;
    CHECK(!getrlimit(RLIMIT_NOFILE, &all));
    none = (struct rlimit){.rlim_cur = here ? 0 : all.rlim_cur, .rlim_max = all.rlim_max};
    CHECK(!setrlimit(RLIMIT_NOFILE, &none));
    expect_refusal("no file descriptor", here);
    CHECK(!setrlimit(RLIMIT_NOFILE, &all));
#endif
    /* Afterwards all is well. */
    try_groups();
}

static void find_rank(void)
{
    MPI_Comm_rank(everybody, &rank);
    MPI_Comm_size(everybody, &size);
}

/* Each three ranks for themselves.  What they have got of the MPI library has the same numbers. */
static void try_apart(void)
{
    MPI_Comm_split(MPI_COMM_WORLD, rank / 3, rank, &everybody);
    find_rank();
    for (uint32_t i = 0; i < rounds; i++)
        try_data(124, 3);
    MPI_Comm_free(&everybody);
    everybody = MPI_COMM_WORLD;
    find_rank();
}

static void try_rules(void)
{
    try_barriers();
    try_data(124, rounds);
    try_data(LONG, 3);
    try_pipeline();
    try_groups();
    try_mistakes();
}

/* Without anybody's help: MPI itself has no way to make windows here. */
static void try_refused(void)
{
    struct party party;
    char why[WHY] = "";

    for (int i = 0; i < 3; i++) {
        CHECK(open_net(&party, 1, 1024, why) == COLLX_EUNFIT);
        CHECK(strstr(why, "MPI_Win_allocate"));
#ifdef OPEN_MPI /* Version 5 has no such thing. */
        CHECK((strstr(why, "--mca osc pt2pt") != NULL) == (OMPI_MAJOR_VERSION < 5));
#endif
        free_comm(party.comm);
    }
    if (!rank)
        printf("%s\n", why);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {{"rules", try_rules},
                                             {"apart", try_apart},
                                             {"lost", try_losses},
                                             {"lost-window", try_lost_window},
                                             {"refused", try_refused}};

#define X(Name) pmpi.Name = PMPI_##Name;
    COLLX_PMPI_FUNCTIONS(X)
#undef X
    MPI_Init(&argc, &argv);
    find_rank();
    CHECK(argc >= 2 && size <= 32);
    if (argc > 2)
        rounds = (uint32_t)atoi(argv[2]);
    collx_world_begun();
    if (collx_self_init(MPI_COMM_WORLD))
        return 1;
    RUN_CASE(cases, argv[1]);
    end_well(rank);
    return 0;
}
