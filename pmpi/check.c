#include "pmpi/check.h"

#include "base/clock.h"
#include "base/job.h"
#include "base/log.h"
#include "base/options.h"
#include "pmpi/agree.h"
#include "pmpi/calls.h"
#include "pmpi/messages.h"
#include "pmpi/select.h"
#include "trace/recorder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct collx_comparison {
    struct collx_slot unchecked[COLLX_ROUTED]; /* what calls go to then */
    enum collx_kind kind;                      /* of the call that is compared */
    uint64_t number;                           /* of this communicator, for who speaks of it */
    int speaks; /* a descriptor, while this rank says for its node that it waits; else < 0 */
    bool said;  /* it has, or another one: once is enough */
    struct collx_message *messages; /* rank 0: [size - 1] */
    struct collx_signature all[];   /* rank 0: [size] */
};

/* Different calls that a message tells apart, and ranks that it names of each. */
enum { CALLS_SAID = 4, RANKS_SAID = 4 };

/* Of the others all that is said is how long they are. */
static const char *const elems[COLLX_ELEMS] = {
    [COLLX_ELEM_I8] = "int8",       [COLLX_ELEM_I16] = "int16",       [COLLX_ELEM_I32] = "int32",
    [COLLX_ELEM_I64] = "int64",     [COLLX_ELEM_U8] = "uint8",        [COLLX_ELEM_U16] = "uint16",
    [COLLX_ELEM_U32] = "uint32",    [COLLX_ELEM_U64] = "uint64",      [COLLX_ELEM_F16] = "float16",
    [COLLX_ELEM_BF16] = "bfloat16", [COLLX_ELEM_F32] = "float32",     [COLLX_ELEM_F64] = "float64",
    [COLLX_ELEM_C64] = "complex64", [COLLX_ELEM_C128] = "complex128",
};

static void print_call(FILE *out, const struct collx_signature *call)
{
    const unsigned long long bytes = call->bytes;

    fputs(collx_mpi_name(call->kind, COLLX_BLOCKING), out);
    if (call->kind == COLLX_BCAST)
        fprintf(out, " of %llu bytes from rank %d", bytes, call->root);
    if (call->kind != COLLX_ALLREDUCE)
        return;
    fprintf(out, " (%s) of %llu bytes, ", collx_op_name(call->op), bytes);
    if (elems[call->elem])
        fputs(elems[call->elem], out);
    else
        fprintf(out, "%u each", call->elem_bytes);
}

static bool is_like(const struct collx_signature *one, const struct collx_signature *other)
{
    return !memcmp(one, other, sizeof *one);
}

/* Those that call what `first` does, which is the first of them. */
static void print_ranks(FILE *out, const struct collx_signature *all, int ranks, int first)
{
    int like = 0, said = 0;

    for (int rank = first; rank < ranks; rank++)
        like += is_like(&all[rank], &all[first]);
    fprintf(out, " on rank%s", like > 1 ? "s" : "");
    for (int rank = first; rank < ranks && said < RANKS_SAID; rank++)
        if (is_like(&all[rank], &all[first]))
            fprintf(out, "%s %d", said++ ? "," : "", rank);
    if (like > said)
        fprintf(out, " and %d more", like - said);
}

/* "MPI_Barrier on rank 0; MPI_Bcast of 8 bytes from rank 0 on ranks 1, 2, 3, 4 and 2 more". */
static void print_all(FILE *out, const struct collx_signature *all, int ranks)
{
    int said = 0;

    for (int rank = 0; rank < ranks; rank++) {
        int first = 0;
        while (!is_like(&all[first], &all[rank]))
            first++;
        if (first < rank)
            continue;
        if (said++ == CALLS_SAID) {
            fputs("; and others", out);
            return;
        }
        fputs(said > 1 ? "; " : "", out);
        print_call(out, &all[rank]);
        print_ranks(out, all, ranks, rank);
    }
}

static void report(const struct collx_comm *comm)
{
    char text[1024] = "what they call";
    FILE *out = fmemopen(text, sizeof text, "w");

    if (out) {
        print_all(out, comm->check->all, comm->size);
        fclose(out);
    }
    collx_warn("the ranks of %s differ: %s. MPI wants the same on all of them, so this is a fault "
               "of the program, whatever an MPI library makes of it. From here on the collectives "
               "of %s go to the MPI library",
               comm->label, text, comm->label);
}

/* Rank 0 knows who has not come.  The others, who know less, are patient for twice as long, and
 * then one of each node speaks, on that of rank 0 only if it has not. */
static void report_wait(struct collx_comm *comm, bool sends, struct collx_missing *missing,
                        uint64_t waited_ns)
{
    struct collx_comparison *check = comm->check;
    const bool several = missing->count > 1;
    char what[40];

    (void)sends;
    snprintf(what, sizeof what, "compares-%llx", (unsigned long long)check->number);
    check->said = true;
    if (!collx_job_first_here(what, &check->speaks) && comm->rank != 0)
        return;
    collx_warn("rank %d of %s has waited %s in %s to hear what %s call%s (COLLX_CHECK)%s. %s "
               "stopped, or %s in something else than collectives of %s? It goes on waiting "
               "(COLLX_STALL sets this time)",
               comm->rank, comm->label, collx_clock_text(waited_ns).text,
               collx_mpi_name(check->kind, COLLX_BLOCKING), collx_missing_text(missing),
               several ? "" : "s", comm->rank ? ", which compares, and may wait for others" : "",
               several ? "Have they" : "Has it", several ? "are they" : "is it", comm->label);
}

static void stop_speaking(struct collx_comparison *check)
{
    if (check->speaks >= 0)
        close(check->speaks);
    check->speaks = -1;
}

static int exchange(struct collx_comm *comm, const struct collx_message *messages, int count)
{
    const int64_t stall = comm->check->said ? 0 : collx_option_number(COLLX_OPTION_STALL);
    const struct collx_patience patience = {stall * (comm->rank ? 2 : 1), report_wait};

    const int error = collx_messages_exchange(comm, messages, count, &patience);

    stop_speaking(comm->check);
    return error;
}

/* Rank 0 hears what the others call, and tells them whether it is all the same. */
static int compare_all(struct collx_comm *comm, const struct collx_signature *own, uint64_t *same)
{
    struct collx_comparison *check = comm->check;
    const int others = comm->size - 1;

    check->all[0] = *own;
    for (int i = 0; i < others; i++)
        check->messages[i] =
            (struct collx_message){.rank = i + 1, .data = &check->all[i + 1], .bytes = sizeof *own};
    int error = exchange(comm, check->messages, others);
    /* What was not heard nobody may build on. */
    *same = !error;
    for (int rank = 1; rank < comm->size; rank++)
        *same &= is_like(&check->all[rank], own);
    for (int i = 0; i < others; i++)
        check->messages[i] = (struct collx_message){
            .rank = i + 1, .sends = true, .data = same, .bytes = sizeof *same};
    const int failed = exchange(comm, check->messages, others);
    if (!*same && !error)
        report(comm);
    return error ? error : failed;
}

/* Whether all ranks call the same, of which this one calls `own`.  0 or an MPI error. */
static int compare(struct collx_comm *comm, struct collx_signature *own, uint64_t *same)
{
    const struct collx_message messages[] = {
        {.rank = 0, .sends = true, .data = own, .bytes = sizeof *own},
        {.rank = 0, .data = same, .bytes = sizeof *same},
    };

    return comm->rank == 0 ? compare_all(comm, own, same) : exchange(comm, messages, 2);
}

static int run(struct collx_slot *slot, struct collx_call *call)
{
    struct collx_comm *comm = slot->state;
    const enum collx_kind kind = (enum collx_kind)(slot - comm->slot);
    struct collx_slot *unchecked = &comm->check->unchecked[kind];
    struct collx_signature own;
    uint64_t same;

    /* MPI refuses it without talking to other ranks. */
    if (!collx_select_sign(comm, kind, call, &own))
        return unchecked->run(unchecked, call);
    int keep = errno;
    comm->check->kind = kind;
    int error = compare(comm, &own, &same);
    errno = keep;
    if (error) {
        pmpi.Comm_call_errhandler(comm->comm, error);
        return error;
    }
    if (same)
        return unchecked->run(unchecked, call);
    collx_calls_all_to_mpi(comm, COLLX_REASON_SETUP_FAILED);
    return slot->run(slot, call);
}

/* NULL: there is no memory for it. */
static struct collx_comparison *create(const struct collx_comm *comm)
{
    const size_t ranks = comm->rank == 0 ? (size_t)comm->size : 0;
    struct collx_comparison *check = calloc(1, sizeof *check + ranks * sizeof check->all[0]);

    if (!check)
        return NULL;
    check->speaks = -1;
    check->messages = calloc(ranks + 1, sizeof *check->messages);
    if (check->messages)
        return check;
    free(check);
    return NULL;
}

void collx_check_install(struct collx_comm *comm)
{
    static bool said;

    if (comm->size == 1)
        return;
    comm->check = create(comm);
    const int failed = collx_messages_listen(comm, comm->size > 2 ? comm->size - 1 : 2);
    uint64_t cannot = failed || !comm->check, number = collx_job_unique();
    if (collx_agree_any(comm, &cannot, 1) || cannot ||
        collx_agree_from_zero(comm, &number, sizeof number)) {
        if (comm->rank == 0)
            collx_warn_once(&said,
                            "the ranks of %s cannot compare what they call (COLLX_CHECK). Most "
                            "likely one of them has no memory left, or no communicator",
                            comm->label);
        collx_check_finish(comm);
        return;
    }
    comm->check->number = number;
    for (int kind = 0; kind < COLLX_ROUTED; kind++) {
        comm->check->unchecked[kind] = comm->slot[kind];
        comm->slot[kind] = (struct collx_slot){.run = run, .state = comm};
    }
}

void collx_check_finish(struct collx_comm *comm)
{
    if (!comm->check)
        return;
    free(comm->check->messages);
    free(comm->check);
    comm->check = NULL;
}
