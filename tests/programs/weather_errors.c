/* Programs whose calls MPI refuses, and that handle errors: cases of weather.c. */
#include "tests/programs/weather.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>

/* Handles that a program forgot to set are MPI's to refuse. */
static void zero_handles(void)
{
    MPI_Comm comm = (MPI_Comm)0;
    MPI_Datatype type = (MPI_Datatype)0;
    int value = 0, class;

    start();
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    rounds(MPI_COMM_WORLD, 10);
    MPI_Error_class(MPI_Bcast(&value, 1, type, 0, MPI_COMM_WORLD), &class);
    CHECK(class == MPI_ERR_TYPE);
    MPI_Error_class(MPI_Barrier(comm), &class);
    CHECK(class == MPI_ERR_COMM);
    rounds(MPI_COMM_WORLD, 10);
    finish();
}

/* A call that one rank alone gets wrong must not make it count differently from the others: with an
 * error of each class by which an MPI library refuses one before it talks to other ranks. */
static void lonely_error(void)
{
    MPI_Datatype uncommitted;
    MPI_Comm comm;
    int value = 0, all = 0, both[2] = {0};

    start();
    MPI_Type_contiguous(2, MPI_INT, &uncommitted);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    /* To which Open MPI 4 reports buffers that are the same. */
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int i = 0; i < 3; i++) {
        if (rank == 0) {
            CHECK(MPI_Bcast(&value, -1, MPI_INT, 0, comm) != MPI_SUCCESS);
            CHECK(MPI_Bcast(both, 1, uncommitted, 0, comm) != MPI_SUCCESS);
            CHECK(MPI_Allreduce(&value, &all, 1, MPI_INT, MPI_MAXLOC, comm) != MPI_SUCCESS);
            CHECK(MPI_Allreduce(both, both, 2, MPI_INT, MPI_SUM, comm) != MPI_SUCCESS);
#ifdef OPEN_MPI /* MPICH fails an assertion. */
            CHECK(MPI_Bcast(MPI_IN_PLACE, 1, MPI_INT, 0, comm) != MPI_SUCCESS);
#endif
            CHECK(MPI_Reduce(&value, &all, 1, MPI_INT, MPI_SUM, -5, comm) != MPI_SUCCESS);
        }
        MPI_Barrier(comm);
    }
    for (int i = 0; i < 20; i++) /* all ask each other at the same call whether they set it up */
        one_round(comm, i);
    rounds(comm, 50);
    MPI_Comm_free(&comm);
    MPI_Type_free(&uncommitted);
    finish();
}

/* Of nothing the others have nothing to wait for: they do not need the rank that MPI refuses it. */
static void lonely_error_of_nothing(void)
{
    MPI_Datatype empty;
    MPI_Comm comm;
    int value = 0;

    start();
    MPI_Type_contiguous(0, MPI_INT, &empty);
    MPI_Type_commit(&empty);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    CHECK((MPI_Bcast(&value, 0, MPI_INT, rank ? 99 : 0, comm) != MPI_SUCCESS) == (rank != 0));
#ifdef MPICH /* Open MPI sends even that. */
    CHECK((MPI_Bcast(&value, 3, empty, rank ? 99 : 0, comm) != MPI_SUCCESS) == (rank != 0));
#endif
    for (int i = 0; i < 20; i++) /* all ask each other at the same call whether they set it up */
        one_round(comm, i);
    rounds(comm, 1500);
    MPI_Comm_free(&comm);
    MPI_Type_free(&empty);
    finish();
}

/* Nor may that rank wait for the others, which need not come: with communicators that are set up
 * before their first call. */
static void lonely_error_first(void)
{
    MPI_Datatype uncommitted;
    MPI_Comm comm;
    int value = 0, all = 0, both[2] = {0};

    start();
    MPI_Type_contiguous(2, MPI_INT, &uncommitted);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int i = 0; i < 4; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
        if (rank == 0 && i == 0)
            CHECK(MPI_Bcast(&value, -1, MPI_INT, 0, comm) != MPI_SUCCESS);
        if (rank == 0 && i == 1)
            CHECK(MPI_Bcast(both, 1, uncommitted, 0, comm) != MPI_SUCCESS);
        if (rank == 0 && i == 2)
            CHECK(MPI_Allreduce(&value, &all, 1, MPI_INT, MPI_MAXLOC, comm) != MPI_SUCCESS);
        if (rank == 0 && i == 3)
            CHECK(MPI_Allreduce(both, both, 2, MPI_INT, MPI_SUM, comm) != MPI_SUCCESS);
        MPI_Barrier(MPI_COMM_WORLD);
        rounds(comm, 50);
        MPI_Comm_free(&comm);
    }
    MPI_Type_free(&uncommitted);
    finish();
}

/* The same of what is routed, with a handler of the program's own, after which nobody but that
 * handler may know. */
static void lonely_error_told(void)
{
    int value = 0, all = 0;

    start();
    MPI_Comm comm = comm_with_handler(count_error);
    for (int i = 0; i < 3; i++) {
        if (rank == 0) {
            MPI_Bcast(&value, -1, MPI_INT, 0, comm);
            MPI_Bcast(&value, 1, MPI_INT, i ? size : -5, comm);
            MPI_Bcast(&value, 1, MPI_DATATYPE_NULL, 0, comm);
            MPI_Allreduce(&value, &all, 1, MPI_INT, MPI_OP_NULL, comm);
            CHECK(errors_told == 4 * (i + 1));
        }
        MPI_Barrier(comm);
    }
    for (int i = 0; i < 20; i++)
        one_round(comm, i);
    rounds(comm, 50);
    MPI_Comm_free(&comm);
    finish();
}

static jmp_buf back;
static int jumps;

static void jump_back(MPI_Comm *comm, int *error, ...)
{
    (void)comm, (void)error;
    jumps++;
    longjmp(back, 1);
}

/* A Bcast that brings the last rank more than it has room for. */
static void bring_too_much(MPI_Comm comm)
{
    char bytes[64] = {0};
    const int before = jumps;

    if (!setjmp(back))
        MPI_Bcast(bytes, rank == size - 1 ? 8 : 64, MPI_CHAR, 0, comm);
    CHECK(jumps == before + (rank == size - 1));
}

/* Calls that MPI refuses on one rank alone, which jumps out of them. */
static void get_it_wrong(MPI_Comm comm)
{
    int value = 0, all = 0;

    if (rank == 0 && !setjmp(back))
        MPI_Bcast(&value, 1, MPI_INT, size, comm);
    if (rank == 0 && !setjmp(back))
        MPI_Allreduce(&value, &all, 1, MPI_INT, MPI_MAXLOC, comm);
}

/* An error handler leaves a call, of which all ranks have to think alike nevertheless: the first on
 * a communicator, a later one, and the one after which all ask each other, which is the last. */
static void jump_out_of_call(void)
{
    enum { ASK_AFTER = 16 };
    MPI_Comm comm;

    start();
    for (int before = 0; before < 3; before++) {
        comm = comm_with_handler(jump_back);
        for (int i = 0; i < before; i++)
            one_round(comm, i);
        get_it_wrong(comm);
        bring_too_much(comm);
        get_it_wrong(comm);
        for (int i = 0; i < 1500; i++)
            one_round(comm, i);
        MPI_Comm_free(&comm);
    }
    comm = comm_with_handler(jump_back);
    for (int i = 1; i < ASK_AFTER; i++)
        MPI_Barrier(comm);
    bring_too_much(comm);
    MPI_Comm_free(&comm);
    finish();
}

/* Of several communicators, before any of them is called again: none is one of a kind then. */
static void jump_out_of_several(void)
{
    enum { SEVERAL = 12 };
    MPI_Comm comm[SEVERAL];

    start();
    for (int i = 0; i < SEVERAL; i++) {
        comm[i] = comm_with_handler(jump_back);
        bring_too_much(comm[i]);
    }
    MPI_Comm_free(&comm[0]);
    comm[0] = comm_with_handler(jump_back);
    for (int i = 0; i < SEVERAL; i++)
        rounds(comm[i], 1500);
    for (int i = 0; i < SEVERAL; i++)
        MPI_Comm_free(&comm[i]);
    finish();
}

static void meet_in_barrier(MPI_Comm *comm, int *error, ...)
{
    (void)error;
    MPI_Barrier(*comm);
}

/* An error handler calls a collective, which the other ranks do after the call that it is told of:
 * the first on a communicator, and a later one. */
static void call_in_handler(void)
{
    start();
    for (int before = 0; before < 2; before++) {
        char bytes[64] = {0};
        MPI_Comm comm = comm_with_handler(meet_in_barrier);
        for (int i = 0; i < before; i++)
            one_round(comm, i);
        MPI_Bcast(bytes, rank == size - 1 ? 8 : 64, MPI_CHAR, 0, comm);
        if (rank != size - 1)
            MPI_Barrier(comm);
        for (int i = 0; i < 1500; i++)
            one_round(comm, i);
        MPI_Comm_free(&comm);
    }
    finish();
}

static void *bring_too_much_by(void *comm)
{
    bring_too_much(*(MPI_Comm *)comm);
    return NULL;
}

static void *free_by(void *comm)
{
    MPI_Comm_free(comm);
    return NULL;
}

static void by_another_thread(void *(*run)(void *), MPI_Comm *comm)
{
    pthread_t thread;

    CHECK(!pthread_create(&thread, NULL, run, comm));
    CHECK(!pthread_join(thread, NULL));
}

/* Likewise, of the first call on a communicator, after which another thread makes the next call, or
 * frees the communicator: then the next one may have its handle. */
static void jump_out_in_thread(void)
{
    MPI_Comm comm;
    int provided;

    /* With more MPICH holds a lock while it calls an error handler. */
    MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided);
    CHECK(provided >= MPI_THREAD_SERIALIZED);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    comm = comm_with_handler(jump_back);
    by_another_thread(bring_too_much_by, &comm);
    rounds(comm, 1500);
    MPI_Comm_free(&comm);
    comm = comm_with_handler(jump_back);
    bring_too_much(comm);
    by_another_thread(free_by, &comm);
    comm = comm_with_handler(jump_back);
    rounds(comm, 1500);
    MPI_Comm_free(&comm);
    finish();
}

static bool leave_operation;

static void add_or_leave(void *in, void *inout, int *len, MPI_Datatype *type)
{
    (void)type;
    if (leave_operation)
        longjmp(back, 1);
    for (int i = 0; i < *len; i++)
        ((int *)inout)[i] += ((int *)in)[i];
}

static void sum(int count, int *values, int *sums, MPI_Op op, MPI_Datatype type, MPI_Comm comm)
{
    for (int i = 0; i < count; i++)
        values[i] = rank + i;
    MPI_Allreduce(values, sums, count, type, op, comm);
    for (int i = 0; i < count; i++)
        CHECK(sums[i] == size * (size - 1) / 2 + size * i);
}

/* Then the operation and the type are freed, and the next ones may have their handles. */
static void leave_operation_of(int count, int *values, int *sums, MPI_Comm comm)
{
    MPI_Datatype type;
    MPI_Op op;

    MPI_Type_dup(MPI_INT, &type);
    MPI_Op_create(add_or_leave, 1, &op);
    sum(count, values, sums, op, type, comm);
    leave_operation = true;
    if (!setjmp(back)) {
        MPI_Allreduce(values, sums, count, type, op, comm);
        CHECK(!"left");
    }
    leave_operation = false;
    use_stack();
    MPI_Op_free(&op);
    MPI_Type_free(&type);
    CHECK(op == MPI_OP_NULL && type == MPI_DATATYPE_NULL);
    for (int more = 0; more < 3; more++)
        sum(count, values, sums, MPI_SUM, MPI_INT, comm);
}

/* An operation leaves the call that uses it, on all ranks. */
static void jump_out_of_operation(void)
{
    enum { MOST = 100000 };
    static int values[MOST], sums[MOST];
    int provided;

    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
    CHECK(provided == MPI_THREAD_MULTIPLE);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < 20; i++) {
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        leave_operation_of(i % 2 ? 1 : MOST, values, sums, comm);
        rounds(comm, 10);
        if (i % 3 == 0)
            leave_operation_of(1, values, sums, comm);
        MPI_Comm_free(&comm);
    }
    finish();
}

/* Buffers that are the same on some ranks alone, which is wrong, but does where MPI does not look.
 */
static void same_buffers(void)
{
    start();
    for (int i = 0; i < 3000; i++) {
        int in[4] = {i, i, i, i}, out[4] = {i, i, i, i};
        CHECK(MPI_Allreduce(rank ? in : out, out, 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD) ==
              MPI_SUCCESS);
        CHECK(out[0] == size * i && out[3] == size * i);
    }
    finish();
}

/* handler_meanwhile.c sets one while collx makes what it needs for the communicator. */
static void handler_meanwhile(void)
{
    MPI_Errhandler handler;

    start();
    rounds(MPI_COMM_WORLD, 50);
    CHECK(!MPI_Comm_get_errhandler(MPI_COMM_WORLD, &handler));
    CHECK(handler != MPI_ERRORS_ARE_FATAL && handler != MPI_ERRORS_RETURN);
    MPI_Errhandler_free(&handler);
    finish();
}

/* A copy that has been given no handler has that of MPI_COMM_WORLD, as it is then, in MPICH. */
static void handler_of_world(void)
{
    MPI_Comm copy;
    int value = 0, class;

    start();
    rounds(MPI_COMM_WORLD, 50);
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    rounds(copy, 50);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Error_class(MPI_Bcast(&value, -1, MPI_INT, 0, copy), &class);
    CHECK(class == MPI_ERR_COUNT);
    MPI_Comm_free(&copy);
    finish();
}

const struct weather weather_errors[] = {
    {"zero-handles", zero_handles},
    {"lonely-error", lonely_error},
    {"lonely-error-of-nothing", lonely_error_of_nothing},
    {"lonely-error-first", lonely_error_first},
    {"lonely-error-told", lonely_error_told},
    {"jump-out-of-call", jump_out_of_call},
    {"jump-out-of-several", jump_out_of_several},
    {"call-in-handler", call_in_handler},
    {"jump-out-in-thread", jump_out_in_thread},
    {"jump-out-of-operation", jump_out_of_operation},
    {"same-buffers", same_buffers},
    {"handler-meanwhile", handler_meanwhile},
    {"handler-of-world", handler_of_world},
    {0},
};
