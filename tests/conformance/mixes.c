/* Random sequences of everything on communicators that overlap, come and go. */
#include "conformance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SLOTS = 7, OUTSTANDING = 4, BYTES_MAX = 200000, ENTERED = 1 };

/* A communicator, and who is in it, as every rank of MPI_COMM_WORLD knows. */
struct slot {
    const char *name;
    MPI_Comm comm; /* MPI_COMM_NULL: this rank is not in it */
    int size;
    int world[CF_RANKS_MAX]; /* by rank */
};

/* A nonblocking operation that every rank of it will wait for at the same step. */
struct outstanding {
    enum { NOTHING, IBARRIER, IALLREDUCE, IBCAST, MESSAGE } kind;
    const struct slot *slot;
    MPI_Request request[2];
    int in[64], out[64];
    unsigned char *sent, *received;
    size_t bytes;
    int step;
};

static struct slot slots[SLOTS];
static struct outstanding outstanding[OUTSTANDING];
static struct cf_random all; /* goes alike on all ranks */
static unsigned char *buffer;

static int member(const struct slot *slot)
{
    for (int i = 0; i < slot->size; i++)
        if (slot->world[i] == cf_rank)
            return i;
    return -1;
}

/* Colour by rank, and the order within; the slot is the one with this rank's colour, so different
 * ranks can mean different communicators by the same slot. */
static void split(struct slot *slot, const char *name, int colour(int rank), bool reversed)
{
    slot->name = name;
    slot->size = 0;
    for (int i = 0; i < cf_size; i++) {
        int rank = reversed ? cf_size - 1 - i : i;

        if (colour(rank) == colour(cf_rank))
            slot->world[slot->size++] = rank;
    }
    MPI_Comm_split(MPI_COMM_WORLD, colour(cf_rank), reversed ? -cf_rank : cf_rank, &slot->comm);
}

static int everyone(int rank)
{
    return rank * 0;
}

static int parity(int rank)
{
    return rank % 2;
}

static int threes(int rank)
{
    return rank / 3;
}

static int not_the_first(int rank)
{
    return rank > 0;
}

static void make(struct slot *slot)
{
    int periodic = 1;

    switch (cf_random_below(&all, 8)) {
    case 0:
        split(slot, "world, reversed", everyone, true);
        break;
    case 1:
        split(slot, "even or odd", parity, false);
        break;
    case 2:
        split(slot, "threes, reversed", threes, true);
        break;
    case 3:
        split(slot, "all but rank 0", not_the_first, false);
        break;
    case 4:
        split(slot, "ring", everyone, false);
        MPI_Comm_free(&slot->comm);
        MPI_Cart_create(MPI_COMM_WORLD, 1, &cf_size, &periodic, 0, &slot->comm);
        break;
    case 5:
        split(slot, "dup of even or odd", parity, false);
        {
            MPI_Comm first = slot->comm;

            MPI_Comm_dup(first, &slot->comm);
            MPI_Comm_free(&first);
        }
        break;
    case 6:
        slot->name = "dup of MPI_COMM_SELF";
        slot->size = 1;
        slot->world[0] = cf_rank;
        MPI_Comm_dup(MPI_COMM_SELF, &slot->comm);
        break;
    default:
        split(slot, "world again", everyone, false);
    }
}

static int sum_of(const struct slot *slot, int step, int i)
{
    int sum = 0;

    for (int r = 0; r < slot->size; r++)
        sum += slot->world[r] * 100 + step + i;
    return sum;
}

static void barrier(const struct slot *slot, int step)
{
    cf_show(ENTERED, (uint64_t)step);
    cf_ok(MPI_Barrier(slot->comm));
    for (int i = 0; i < slot->size; i++)
        if (cf_seen(ENTERED, slot->world[i]) < (uint64_t)step)
            cf_fail("left before rank %d of MPI_COMM_WORLD had come", slot->world[i]);
}

static void bcast(const struct slot *slot, int root, size_t bytes, int step)
{
    /* Members of one communicator agree on this; those of its siblings need not. */
    const unsigned char *data = cf_stream((uint64_t)step, slot->world[root]);

    memset(buffer, 0, bytes);
    if (slot->world[root] == cf_rank)
        memcpy(buffer, data, bytes);
    if (cf_ok(MPI_Bcast(buffer, (int)bytes, MPI_BYTE, root, slot->comm)) &&
        memcmp(buffer, data, bytes) != 0)
        cf_fail("%zu bytes from root %d: wrong data", bytes, root);
}

static void allreduce(const struct slot *slot, size_t count, int step)
{
    int *in = (int *)(void *)buffer, *out = in + BYTES_MAX / sizeof(int);

    for (size_t i = 0; i < count; i++)
        in[i] = cf_rank * 100 + step + (int)i;
    if (!cf_ok(MPI_Allreduce(in, out, (int)count, MPI_INT, MPI_SUM, slot->comm)))
        return;
    for (size_t i = 0; i < count; i++)
        if (out[i] != sum_of(slot, step, (int)i)) {
            cf_fail("element %zu: %d, expected %d", i, out[i], sum_of(slot, step, (int)i));
            return;
        }
}

static void start(struct outstanding *o, const struct slot *slot, int step)
{
    static unsigned char *sent[OUTSTANDING], *received[OUTSTANDING];
    size_t which = (size_t)(o - outstanding);
    int root = (int)cf_random_below(&all, CF_RANKS_MAX) % slot->size;

    o->kind = 1 + (int)cf_random_below(&all, 4);
    o->bytes = cf_random_below(&all, BYTES_MAX);
    o->slot = slot;
    o->step = step;
    o->request[0] = o->request[1] = MPI_REQUEST_NULL;
    cf_case("step %d: start %d on %s", step, o->kind, slot->name);
    switch (o->kind) {
    case IBARRIER:
        cf_ok(MPI_Ibarrier(slot->comm, &o->request[0]));
        break;
    case IALLREDUCE:
        for (int i = 0; i < 64; i++)
            o->in[i] = cf_rank * 100 + step + i;
        cf_ok(MPI_Iallreduce(o->in, o->out, 64, MPI_INT, MPI_SUM, slot->comm, &o->request[0]));
        break;
    case IBCAST:
        o->out[0] = slot->world[root] == cf_rank ? step : -1;
        cf_ok(MPI_Ibcast(o->out, 1, MPI_INT, root, slot->comm, &o->request[0]));
        break;
    default: {
        int me = member(slot), next = (me + 1) % slot->size,
            previous = (me + slot->size - 1) % slot->size;

        if (!sent[which]) {
            sent[which] = malloc(BYTES_MAX);
            received[which] = malloc(BYTES_MAX);
        }
        o->sent = sent[which];
        o->received = received[which];
        memcpy(o->sent, cf_stream((uint64_t)step, cf_rank), o->bytes);
        cf_ok(MPI_Irecv(o->received, (int)o->bytes, MPI_BYTE, previous, step, slot->comm,
                        &o->request[0]));
        cf_ok(MPI_Isend(o->sent, (int)o->bytes, MPI_BYTE, next, step, slot->comm, &o->request[1]));
    }
    }
}

static void end(struct outstanding *o)
{
    static const char *const names[] = {"", "MPI_Ibarrier", "MPI_Iallreduce", "MPI_Ibcast",
                                        "a message"};
    MPI_Status status[2];
    int me;

    if (o->kind == NOTHING)
        return;
    me = member(o->slot);
    cf_case("wait for %s of step %d on %s", names[o->kind], o->step, o->slot->name);
    cf_ok(MPI_Waitall(2, o->request, status));
    if (o->kind == IALLREDUCE && o->out[63] != sum_of(o->slot, o->step, 63))
        cf_fail("%d, expected %d", o->out[63], sum_of(o->slot, o->step, 63));
    if (o->kind == IBCAST && o->out[0] != o->step)
        cf_fail("%d, expected %d", o->out[0], o->step);
    if (o->kind == MESSAGE) {
        int previous = o->slot->world[(me + o->slot->size - 1) % o->slot->size];

        if (memcmp(o->received, cf_stream((uint64_t)o->step, previous), o->bytes) != 0)
            cf_fail("%zu bytes from rank %d: wrong data", o->bytes, previous);
    }
    o->kind = NOTHING;
}

/* A new communicator in place of an old one, whose handle is likely to be used again. */
static void replace(struct slot *slot, int step)
{
    cf_case("step %d: free %s and make another", step, slot->name);
    for (int i = 0; i < OUTSTANDING; i++)
        if (outstanding[i].slot == slot)
            end(&outstanding[i]);
    MPI_Comm_free(&slot->comm);
    make(slot);
}

static void one_collective(int step)
{
    const struct slot *slot = &slots[cf_random_below(&all, SLOTS)];
    uint64_t kind = cf_random_below(&all, 3), choice = cf_random_below(&all, 10);
    size_t bytes = cf_random_below(&all, choice == 0 ? BYTES_MAX : choice < 4 ? 9000 : 64);
    int root = (int)cf_random_below(&all, CF_RANKS_MAX) % slot->size;

    cf_case("step %d: %s on %s", step,
            kind == 0   ? "MPI_Barrier"
            : kind == 1 ? "MPI_Bcast"
                        : "MPI_Allreduce",
            slot->name);
    if (kind == 0)
        barrier(slot, step);
    else if (kind == 1)
        bcast(slot, root, bytes, step);
    else
        allreduce(slot, bytes / sizeof(int), step);
}

static void steps(int count, int every)
{
    struct cf_random delay = {(uint64_t)cf_rank};

    for (int step = 1; step <= count; step++) {
        uint64_t what = cf_random_below(&all, 20);

        if (step % every == 0) {
            replace(&slots[cf_random_below(&all, SLOTS)], step);
        } else if (what < 2) {
            struct outstanding *o = &outstanding[cf_random_below(&all, OUTSTANDING)];
            const struct slot *slot = &slots[cf_random_below(&all, SLOTS)];

            end(o);
            start(o, slot, step);
        } else {
            one_collective(step);
        }
        if (cf_random_below(&delay, 200) == 0)
            usleep(200);
    }
    for (int i = 0; i < OUTSTANDING; i++)
        end(&outstanding[i]);
}

void cf_test_mixes(void)
{
    int count = cf_quick ? 60 : cf_size > 4 ? 800 : 4000;

    all.state = 4242;
    buffer = malloc(2 * BYTES_MAX);
    cf_show(ENTERED, 0);
    cf_sync();
    for (int i = 0; i < SLOTS; i++)
        make(&slots[i]);
    steps(count, cf_quick || cf_size > 4 ? count / 8 : 100);
    for (int i = 0; i < SLOTS; i++)
        MPI_Comm_free(&slots[i].comm);
    free(buffer);
    /* Freed and gone: MPI itself is as well as before. */
    cf_case("MPI_COMM_WORLD afterwards");
    cf_ok(MPI_Barrier(MPI_COMM_WORLD));
}
