/* What a program may do with a collective in each of its forms, for counts of one sort: included by
 * large.c, once for int and once for large counts, with
 *
 *   N, D         the types of counts and displacements,
 *   MINE(name)   how what is of this sort is called here,
 *   SUFFIX       with what the names of MPI's functions of this sort end.
 *
 * What does not matter on a rank is given as nonsense.
 */
#define NOTHING ((const N *)16)
#define NOWHERE ((const D *)16)
#define ANY ((N)(1LL << 40))

/* --- the functions, of which mpi.h need not know ---------------------------------------------- */

#define PARAMETERS(KIND) COLLX_PARAMETERS_##KIND(N, D)
#define POINTERS(KIND, Name, Iname, word)                                                          \
    int (*Name)(PARAMETERS(KIND));                                                                 \
    int (*Iname)(PARAMETERS(KIND), MPI_Request *);                                                 \
    int (*Name##_init)(PARAMETERS(KIND), MPI_Info, MPI_Request *);
static struct {
    COLLX_COLLECTIVES_WITH_COUNTS(POINTERS)
} MINE(MPI);
#undef POINTERS

static void MINE(find)(void)
{
#define FIND(name)                                                                                 \
    MINE(MPI).name = (__typeof__(MINE(MPI).name))dlsym(RTLD_DEFAULT, "MPI_" #name SUFFIX);         \
    CHECK(MINE(MPI).name);
#define FIND_FORMS(KIND, Name, Iname, word) FIND(Name) FIND(Iname) FIND(Name##_init)
    COLLX_COLLECTIVES_WITH_COUNTS(FIND_FORMS)
#undef FIND_FORMS
#undef FIND
}

/* --- a call, from its start to its end -------------------------------------------------------- */

/* clang-format off */
#define FORMS(KIND, Name, Iname, word)                                                                       \
    static int MINE(Name)(enum collx_form form, PARAMETERS(KIND))                                            \
    {                                                                                                        \
        MPI_Request request = MPI_REQUEST_NULL;                                                              \
        int error;                                                                                           \
                                                                                                             \
        calls[COLLX_##KIND][form]++;                                                                         \
        if (form == COLLX_BLOCKING)                                                                          \
            return MINE(MPI).Name(COLLX_ARGUMENTS_##KIND);                                                   \
        if (form == COLLX_NONBLOCKING) {                                                                     \
            error = MINE(MPI).Iname(COLLX_ARGUMENTS_##KIND, &request);                                       \
            complete(&request);                                                                              \
            return error;                                                                                    \
        }                                                                                                    \
        error = MINE(MPI).Name##_init(COLLX_ARGUMENTS_##KIND, MPI_INFO_NULL, &request);                      \
        MPI_Start(&request);                                                                                 \
        MPI_Wait(&request, MPI_STATUS_IGNORE);                                                               \
        MPI_Request_free(&request);                                                                          \
        return error;                                                                                        \
    }
/* clang-format on */
COLLX_COLLECTIVES_WITH_COUNTS(FORMS)
#undef FORMS
#undef PARAMETERS

/* --- arguments -------------------------------------------------------------------------------- */

/* As amount() says, each ROOM elements after the one before. */
struct MINE(arrays) {
    N sent[MOST], received[MOST], parts[MOST];
    D sent_at[MOST], received_at[MOST], at[MOST];
    D sent_bytes[MOST], received_bytes[MOST];
    MPI_Datatype types[MOST];
};

static void MINE(fill)(struct MINE(arrays) * a, const struct place *p)
{
    for (int i = 0; i < MOST; i++) {
        a->sent[i] = amount(p->rank, i);
        a->received[i] = amount(i, p->rank);
        a->parts[i] = amount(i, 0);
        a->sent_at[i] = a->received_at[i] = a->at[i] = i * ROOM;
        a->sent_bytes[i] = a->received_bytes[i] = i * ROOM * (D)sizeof(int);
        a->types[i] = MPI_INT;
    }
    if (p->in_place) /* what comes back is as much as what goes */
        for (int i = 0; i < MOST; i++)
            a->received[i] = amount(i < p->rank ? i : p->rank, i < p->rank ? p->rank : i);
}

/* With neighbours, amounts are those of the edges' ends. */
static void MINE(fill_neighbours)(struct MINE(arrays) * a, const struct place *p)
{
    MINE(fill)(a, p);
    for (int i = 0; i < p->out; i++)
        a->sent[i] = amount(p->rank, p->to[i]);
    for (int i = 0; i < p->in; i++) {
        a->received[i] = amount(p->from[i], p->rank);
        a->parts[i] = amount(p->from[i], 0);
    }
}

static int MINE(call)(enum collx_kind kind, enum collx_form form, const struct place *p,
                      const int *send, int *receive)
{
    struct MINE(arrays) a;
    const void *from = p->in_place ? MPI_IN_PLACE : send;
    /* Rooted ones: what the root has in place is its own part. */
    const void *part = p->in_place && p->is_root ? MPI_IN_PLACE : send;
    void *place = p->in_place && p->is_root ? MPI_IN_PLACE : receive;
    const N mine = amount(p->rank, 0);
    const N sent = p->is_peer && part != MPI_IN_PLACE ? 3 : ANY;
    const N got = p->is_peer && place != MPI_IN_PLACE ? 3 : ANY;
    const N all = p->is_root || p->is_peer ? 7 : ANY;
    MPI_Comm comm = p->comm;

    MINE(fill)(&a, p);
    switch (kind) {
    case COLLX_BCAST:
        return MINE(Bcast)(form, receive, all, MPI_INT, p->root, comm);
    case COLLX_ALLREDUCE:
        return MINE(Allreduce)(form, from, receive, 7, MPI_INT, MPI_SUM, comm);
    case COLLX_REDUCE:
        return MINE(Reduce)(form, part, receive, all, MPI_INT, MPI_SUM, p->root, comm);
    case COLLX_SCAN:
        return MINE(Scan)(form, from, receive, 7, MPI_INT, MPI_SUM, comm);
    case COLLX_EXSCAN:
        return MINE(Exscan)(form, from, receive, 7, MPI_INT, MPI_SUM, comm);
    case COLLX_REDUCE_SCATTER_BLOCK:
        return MINE(Reduce_scatter_block)(form, from, receive, 2, MPI_INT, MPI_SUM, comm);
    case COLLX_REDUCE_SCATTER:
        return MINE(Reduce_scatter)(form, from, receive, a.parts, MPI_INT, MPI_SUM, comm);
    case COLLX_GATHER:
        return MINE(Gather)(form, part, sent, MPI_INT, receive, p->is_root ? 3 : ANY, MPI_INT,
                            p->root, comm);
    case COLLX_SCATTER:
        return MINE(Scatter)(form, send, p->is_root ? 3 : ANY, MPI_INT, place, got, MPI_INT,
                             p->root, comm);
    case COLLX_GATHERV:
        return MINE(Gatherv)(form, part, sent == ANY ? ANY : mine, MPI_INT, receive,
                             p->is_root ? a.parts : NOTHING, p->is_root ? a.at : NOWHERE, MPI_INT,
                             p->root, comm);
    case COLLX_SCATTERV:
        return MINE(Scatterv)(form, send, p->is_root ? a.parts : NOTHING,
                              p->is_root ? a.at : NOWHERE, MPI_INT, place, got == ANY ? ANY : mine,
                              MPI_INT, p->root, comm);
    case COLLX_ALLGATHER:
        return MINE(Allgather)(form, from, p->in_place ? ANY : 3, MPI_INT, receive, 3, MPI_INT,
                               comm);
    case COLLX_ALLTOALL:
        return MINE(Alltoall)(form, from, p->in_place ? ANY : 3, MPI_INT, receive, 3, MPI_INT,
                              comm);
    case COLLX_ALLGATHERV:
        return MINE(Allgatherv)(form, from, p->in_place ? ANY : mine, MPI_INT, receive, a.parts,
                                a.at, MPI_INT, comm);
    case COLLX_ALLTOALLV:
        return MINE(Alltoallv)(form, from, p->in_place ? NOTHING : a.sent,
                               p->in_place ? NOWHERE : a.sent_at, MPI_INT, receive, a.received,
                               a.received_at, MPI_INT, comm);
    case COLLX_ALLTOALLW:
        return MINE(Alltoallw)(form, from, p->in_place ? NOTHING : a.sent,
                               p->in_place ? NOWHERE : a.sent_bytes, a.types, receive, a.received,
                               a.received_bytes, a.types, comm);
    default:
        break;
    }

    MINE(fill_neighbours)(&a, p);
    switch (kind) {
    case COLLX_NEIGHBOR_ALLGATHER:
        return MINE(Neighbor_allgather)(form, send, 3, MPI_INT, receive, 3, MPI_INT, comm);
    case COLLX_NEIGHBOR_ALLTOALL:
        return MINE(Neighbor_alltoall)(form, send, 3, MPI_INT, receive, 3, MPI_INT, comm);
    case COLLX_NEIGHBOR_ALLGATHERV:
        return MINE(Neighbor_allgatherv)(form, send, mine, MPI_INT, receive, a.parts, a.at, MPI_INT,
                                         comm);
    case COLLX_NEIGHBOR_ALLTOALLV:
        return MINE(Neighbor_alltoallv)(form, send, a.sent, a.sent_at, MPI_INT, receive, a.received,
                                        a.received_at, MPI_INT, comm);
    case COLLX_NEIGHBOR_ALLTOALLW: {
        MPI_Aint sent_at[MOST], received_at[MOST];
        for (int i = 0; i < MOST; i++)
            sent_at[i] = received_at[i] = i * ROOM * (MPI_Aint)sizeof(int);
        return MINE(Neighbor_alltoallw)(form, send, a.sent, sent_at, a.types, receive, a.received,
                                        received_at, a.types, comm);
    }
    default:
        CHECK(!"known");
        return -1;
    }
}

#undef NOTHING
#undef NOWHERE
#undef ANY
