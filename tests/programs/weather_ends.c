/* Programs that end MPI or a communicator in ways of their own: cases of weather.c. */
#include "tests/programs/weather.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void aborts(void)
{
    start();
    rounds(MPI_COMM_WORLD, 50);
    if (rank == size - 1)
        MPI_Abort(MPI_COMM_WORLD, 42);
    for (;;)
        MPI_Barrier(MPI_COMM_WORLD);
}

static void before_init(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
}

static void after_finalize(void)
{
    int value = 0, sum;

    start();
    rounds(MPI_COMM_WORLD, 50);
    MPI_Finalize();
    MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

/* On a communicator that the program has not freed. */
static void after_finalize_kept(void)
{
    int value = 0, sum;
    MPI_Comm comm;

    start();
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    rounds(comm, 50);
    MPI_Finalize();
    MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, comm);
}

static void no_finalize(void)
{
    start();
    rounds(MPI_COMM_WORLD, 50);
    good();
    exit(0);
}

/* Libraries do their last collectives while MPI_Finalize deletes what hangs on MPI_COMM_SELF. */
static int last_collectives(MPI_Comm self, int key, void *value, void *extra)
{
    MPI_Datatype every_other;
    int data[8] = {0};

    (void)self, (void)key, (void)value, (void)extra;
    MPI_Type_vector(4, 1, 2, MPI_INT, &every_other);
    MPI_Type_commit(&every_other);
    if (rank == 0)
        data[6] = 6;
    for (int i = 0; i < 6; i++)
        MPI_Bcast(data, 1, every_other, 0, MPI_COMM_WORLD);
    CHECK(data[6] == 6);
    rounds(MPI_COMM_WORLD, 10);
    MPI_Type_free(&every_other);
    return MPI_SUCCESS;
}

static void in_finalize(void)
{
    int key;

    start();
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, last_collectives, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
    rounds(MPI_COMM_WORLD, 10);
    finish();
}

/* And in MPI_Comm_free, on the communicator that is freed, after they have freed what they had made
 * of it. */
static int last_call(MPI_Comm comm, int key, void *value, void *extra)
{
    MPI_Comm *own = value;

    (void)key, (void)extra;
    CHECK(MPI_Comm_free(own) == MPI_SUCCESS);
    one_round(comm, 3);
    return MPI_SUCCESS;
}

static void in_comm_free(void)
{
    MPI_Comm world = MPI_COMM_WORLD;
    int key;

    start();
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, last_call, &key, NULL);
    for (int i = 0; i < 12; i++) {
        /* Handles are used again for communicators of other ranks. */
        MPI_Comm comm, own;
        MPI_Comm_split(MPI_COMM_WORLD, i % 3 ? rank % 2 : 0, i % 2 ? rank : -rank, &comm);
        MPI_Comm_dup(comm, &own);
        if (rank == 0)
            MPI_Comm_set_attr(comm, key, &own);
        rounds(comm, i % 4 == 3 ? 10 : 1);
        if (rank != 0)
            MPI_Comm_set_attr(comm, key, &own);
        CHECK((i % 5 ? MPI_Comm_free : MPI_Comm_disconnect)(&comm) == MPI_SUCCESS);
        CHECK(comm == MPI_COMM_NULL);
    }
    MPI_Comm_free_keyval(&key);
    rounds(MPI_COMM_WORLD, 10);
    /* One rank's mistake does not change where calls go. */
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (rank == 0)
        CHECK(MPI_Comm_free(&world) != MPI_SUCCESS);
    rounds(MPI_COMM_WORLD, 10);
    finish();
}

/* MPICH calls what hangs on a communicator that is freed with messages on their way when the last
 * has come. */
static void after_comm_free(void)
{
    enum { LONG = 1 << 18, MADE = 2 };
    int *sent = calloc(LONG, sizeof *sent), *received = calloc(LONG, sizeof *received), key;
    MPI_Request request[2];
    MPI_Status status[2];
    MPI_Comm made[MADE];

    start();
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, last_call, &key, NULL);
    for (int i = 0; i < 9; i++) {
        MPI_Comm comm, own;
        int ranks, place;
        MPI_Comm_split(MPI_COMM_WORLD, i % 3 ? rank % 2 : 0, i % 2 ? rank : -rank, &comm);
        MPI_Comm_size(comm, &ranks);
        MPI_Comm_rank(comm, &place);
        MPI_Comm_dup(comm, &own);
        /* What is hung on it first is deleted last. */
        MPI_Comm_set_attr(comm, key, &own);
        if (i < 6)
            rounds(comm, i % 2 ? 5000 : 10);
        sent[LONG - 1] = rank;
        const int right = (place + 1) % ranks, left = (place + ranks - 1) % ranks;
        MPI_Isend(sent, LONG, MPI_INT, right, 0, comm, &request[0]);
        MPI_Irecv(received, LONG, MPI_INT, left, 0, comm, &request[1]);
        CHECK(MPI_Comm_free(&comm) == MPI_SUCCESS);
        MPI_Waitall(2, request, status);
        CHECK(received[LONG - 1] >= 0 && received[LONG - 1] < size);
        /* One has its handle, and not its ranks. */
        for (int k = 0; k < MADE; k++)
            MPI_Comm_dup(MPI_COMM_WORLD, &made[k]);
        for (int k = 0; k < MADE; k++)
            rounds(made[k], i % 2 ? 10 : 5000);
        for (int k = 0; k < MADE; k++)
            MPI_Comm_free(&made[k]);
    }
    MPI_Comm_free_keyval(&key);
    free(sent);
    free(received);
    finish();
}

static int barrier_of(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)key, (void)value, (void)extra;
    return MPI_Barrier(comm);
}

/* Windows and files have communicators of their own, made of the program's with all that hangs
 * there. */
static void with_windows_and_files(void)
{
    enum { MADE = 16 };
    static int memory[4];
    MPI_Comm comm, made[MADE];
    MPI_File file;
    MPI_Win window;
    int key;

    start();
    MPI_Comm_create_keyval(MPI_COMM_DUP_FN, barrier_of, &key, NULL);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_attr(comm, key, NULL);
    for (int turn = 0; turn < 2; turn++) {
        if (turn == 0) {
            MPI_Win_create(memory, sizeof memory, 1, MPI_INFO_NULL, comm, &window);
            MPI_Win_free(&window);
        } else {
            MPI_File_open(comm, "file", MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
                          MPI_INFO_NULL, &file);
            MPI_File_close(&file);
        }
        /* One has the handle that theirs had, and not its ranks. */
        for (int i = 0; i < MADE; i++)
            MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &made[i]);
        for (int i = 0; i < MADE; i++)
            rounds(made[i], turn ? 100 : 3);
        for (int i = 0; i < MADE; i++)
            MPI_Comm_free(&made[i]);
    }
    rounds(comm, 100);
    MPI_Comm_free(&comm);
    finish();
}

static int refuses(MPI_Comm comm, int key, void *value, void *extra)
{
    int *left = value;

    (void)comm, (void)key, (void)extra;
    return *left && (*left)-- ? MPI_ERR_OTHER : MPI_SUCCESS;
}

static jmp_buf back;

static void jump(MPI_Comm *comm, int *code, ...)
{
    (void)comm, (void)code;
    longjmp(back, 1);
}

static __attribute__((noinline)) void free_none(void)
{
    MPI_Comm none = MPI_COMM_NULL;

    if (!setjmp(back))
        MPI_Comm_free(&none);
}

static __attribute__((noinline)) void free_no_window(void)
{
    MPI_Win none = MPI_WIN_NULL;

    if (!setjmp(back))
        MPI_Win_free(&none);
}

static __attribute__((noinline)) void rounds_deep_down(MPI_Comm comm)
{
    volatile char junk[4096];

    memset((void *)junk, 0x5a, sizeof junk);
    rounds(comm, 100);
}

/* That of a communicator which a callback keeps alive, on one rank alone. */
static __attribute__((noinline)) void free_refused(MPI_Comm comm)
{
    int *volatile left = malloc(sizeof *left), key;

    *left = 1;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, refuses, &key, NULL);
    MPI_Comm_set_attr(comm, key, left);
    if (rank != 0)
        MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    if (!setjmp(back))
        CHECK(MPI_Comm_free(&comm) != MPI_SUCCESS && rank != 0);
    CHECK(*left == 0);
    MPI_Comm_delete_attr(comm, key);
    free(left);
}

/* As an exception does that a handler throws. */
static void jump_out_of_free(void)
{
    MPI_Errhandler handler;
    MPI_Comm comm;

    start();
    MPI_Comm_create_errhandler(jump, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
    for (int i = 0; i < 20; i++)
        free_none();
    use_stack();
    if (rank == 0)
        free_no_window();
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    rounds_deep_down(comm);
    MPI_Comm_free(&comm);
    for (int i = 0; i < 3; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        rounds(comm, 100);
        if (i == 0) {
            free_refused(comm);
            use_stack();
            for (int k = 0; k < 300; k++)
                one_round(comm, k);
        }
        MPI_Comm_free(&comm);
    }
    finish();
}

/* It stays, then, as it was. */
static void free_fails(void)
{
    MPI_Comm comm, freed;
    int key, left = 1;

    start();
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, refuses, &key, NULL);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (rank == 0)
        MPI_Comm_set_attr(comm, key, &left);
    rounds(comm, 100);
    if (rank != 0)
        MPI_Comm_set_attr(comm, key, &left);
    freed = comm;
    CHECK(MPI_Comm_free(&freed) != MPI_SUCCESS);
    for (int i = 0; i < 300; i++)
        one_round(comm, i);
    MPI_Comm_free(&comm);
    finish();
}

static MPI_Comm outer, inner;

static int uses_outer(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)value, (void)extra;
    return MPI_Barrier(outer);
}

static int frees_inner(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)value, (void)extra;
    return MPI_Comm_free(&inner);
}

/* What hangs on a library's communicator, which is freed with the program's, uses the program's. */
static void in_nested_free(void)
{
    enum { MADE = 2 };
    MPI_Comm made[MADE], freed;
    int use, release;

    start();
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, uses_outer, &use, NULL);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, frees_inner, &release, NULL);
    MPI_Comm_split(MPI_COMM_WORLD, rank, 0, &freed);
    MPI_Comm_dup(freed, &inner);
    MPI_Comm_set_attr(freed, release, NULL);
    MPI_Comm_set_attr(inner, use, NULL);
    MPI_Barrier(freed);
    MPI_Barrier(inner);
    outer = freed;
    MPI_Comm_free(&freed);
    /* One has its handle, and not its ranks. */
    for (int i = 0; i < MADE; i++)
        MPI_Comm_dup(MPI_COMM_WORLD, &made[i]);
    for (int i = 0; i < MADE; i++)
        rounds(made[i], 5000);
    for (int i = 0; i < MADE; i++)
        MPI_Comm_free(&made[i]);
    finish();
}

static int late_barrier(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)key, (void)value, (void)extra;
    if (rank == 0)
        usleep(200000);
    return MPI_Barrier(comm);
}

/* MPI calls that in MPI_Finalize, when it has deleted all that hangs on MPI_COMM_SELF. */
static void end_with_barrier_on_world(void)
{
    int key;

    rounds(MPI_COMM_WORLD, 5000);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, late_barrier, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_WORLD, key, NULL);
    finish();
}

static void on_world(void)
{
    start();
    end_with_barrier_on_world();
}

static int failing(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)value, (void)extra;
    return MPI_ERR_OTHER;
}

/* And when a callback on MPI_COMM_SELF has failed, on one rank. */
static void on_world_after_failure(void)
{
    int key;

    start();
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, failing, &key, NULL);
    if (rank == 1)
        MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
    end_with_barrier_on_world();
}

static int free_it(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)extra;
    return MPI_Comm_free(value);
}

/* A library's communicator goes with MPI_COMM_WORLD. */
static void freed_with_world(void)
{
    static MPI_Comm own;
    int key;

    start();
    MPI_Comm_dup(MPI_COMM_WORLD, &own);
    rounds(own, 50);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, free_it, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_WORLD, key, &own);
    finish();
}

const struct weather weather_ends[] = {
    {"aborts", aborts},
    {"before-init", before_init},
    {"after-finalize", after_finalize},
    {"after-finalize-kept", after_finalize_kept},
    {"no-finalize", no_finalize},
    {"in-finalize", in_finalize},
    {"in-comm-free", in_comm_free},
    {"after-comm-free", after_comm_free},
    {"with-windows-and-files", with_windows_and_files},
    {"jump-out-of-free", jump_out_of_free},
    {"free-fails", free_fails},
    {"in-nested-free", in_nested_free},
    {"on-world", on_world},
    {"on-world-after-failure", on_world_after_failure},
    {"freed-with-world", freed_with_world},
    {0},
};
