#include "pmpi/check.h"

#include "base/log.h"
#include "pmpi/agree.h"
#include "pmpi/calls.h"
#include "pmpi/select.h"
#include "trace/recorder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What all ranks have to have in common.  It travels as numbers, as it is and as its complement:
 * it was the same everywhere, if each bit is set in one of them only. */
enum { WORDS = sizeof(struct collx_signature) / sizeof(uint64_t) };
_Static_assert(sizeof(struct collx_signature) % sizeof(uint64_t) == 0 &&
                   2 * WORDS <= (int)COLLX_AGREE_WORDS,
               "it travels twice");

/* Different calls that a message tells apart, and ranks that it names of each. */
enum { CALLS_SAID = 4, RANKS_SAID = 4 };

static const char *const names[COLLX_KINDS] = {
#define X(KIND, Name, Iname, word) [COLLX_##KIND] = "MPI_" #Name,
    COLLX_COLLECTIVES(X)
#undef X
};

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

    fputs(names[call->kind], out);
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

/* `all` NULL: some rank has no memory for it. */
static void report(const struct collx_comm *comm, const struct collx_signature *all)
{
    char text[1024] = "what they call";
    FILE *out = all ? fmemopen(text, sizeof text, "w") : NULL;

    if (out) {
        print_all(out, all, comm->size);
        fclose(out);
    }
    collx_warn("the ranks of %s differ: %s. MPI wants the same on all of them, so this is a fault "
               "of the program, whatever an MPI library makes of it. From here on the collectives "
               "of %s go to the MPI library",
               comm->label, text, comm->label);
}

/* The ranks call different things, this one `own`: all tell all.  0 or an MPI error. */
static int tell(struct collx_comm *comm, const struct collx_signature *own)
{
    struct collx_signature *all = malloc((size_t)comm->size * sizeof *all);
    uint64_t cannot = !all;
    int error = collx_agree_any(comm, &cannot, 1);

    if (!error && !cannot)
        error = collx_agree_from_all(comm, own, all, sizeof *own);
    if (!error && comm->rank == 0)
        report(comm, cannot ? NULL : all);
    free(all);
    return error;
}

static int run(enum collx_kind kind, struct collx_slot *slot, struct collx_call *call)
{
    struct collx_comm *comm = slot->state;
    struct collx_signature own;
    uint64_t words[2 * WORDS];
    int keep = errno;
    bool same = true;

    /* MPI refuses it without talking to other ranks. */
    if (!collx_select_sign(comm, kind, call, &own))
        return comm->unchecked[kind].run(&comm->unchecked[kind], call);
    memcpy(words, &own, sizeof own);
    for (int i = 0; i < WORDS; i++)
        words[WORDS + i] = ~words[i];
    int error = collx_agree_any(comm, words, 2 * WORDS);
    errno = keep;
    if (error)
        return error;
    for (int i = 0; i < WORDS; i++)
        same = same && !(words[i] & words[WORDS + i]);
    if (same)
        return comm->unchecked[kind].run(&comm->unchecked[kind], call);

    error = tell(comm, &own);
    errno = keep;
    for (int each = 0; each < COLLX_ROUTED; each++)
        collx_calls_to_mpi(comm, (enum collx_kind)each, COLLX_REASON_SETUP_FAILED);
    return error ? error : comm->slot[kind].run(&comm->slot[kind], call);
}

static int run_barrier(struct collx_slot *slot, struct collx_call *call)
{
    return run(COLLX_BARRIER, slot, call);
}

static int run_bcast(struct collx_slot *slot, struct collx_call *call)
{
    return run(COLLX_BCAST, slot, call);
}

static int run_allreduce(struct collx_slot *slot, struct collx_call *call)
{
    return run(COLLX_ALLREDUCE, slot, call);
}

void collx_check_install(struct collx_comm *comm)
{
    static int (*const checked[COLLX_ROUTED])(struct collx_slot *, struct collx_call *) = {
        [COLLX_BARRIER] = run_barrier,
        [COLLX_BCAST] = run_bcast,
        [COLLX_ALLREDUCE] = run_allreduce,
    };

    for (int kind = 0; kind < COLLX_ROUTED; kind++) {
        comm->unchecked[kind] = comm->slot[kind];
        comm->slot[kind] = (struct collx_slot){.run = checked[kind], .state = comm};
    }
}
