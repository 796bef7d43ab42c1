/* How deep collectives go on the stack of a thread, on a communicator's first calls and later:
 * prints CALL BYTES for each, of the rank that goes deepest, and "good" at the end. */
#include "tests/programs/check.h"

#include <mpi.h>

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

enum { STACK = 1 << 20, PAINT = 0x5a, MANY = 4096 };

static MPI_Comm comm;
static long double in[MANY], out[MANY];
static int rank;

static void nothing(void)
{
}

static void barrier(void)
{
    MPI_Barrier(comm);
}

static void bcast(void)
{
    MPI_Bcast(in, sizeof in, MPI_BYTE, 0, comm);
}

static void allreduce(void)
{
    MPI_Allreduce(in, out, MANY, MPI_LONG_DOUBLE, MPI_SUM, comm);
}

static void add(void *left, void *right, int *count, MPI_Datatype *type)
{
    MPI_Aint lower, extent;

    MPI_Type_get_extent(*type, &lower, &extent);
    for (int i = 0; i < *count; i++)
        *(int *)((char *)right + i * extent) += *(int *)((char *)left + i * extent);
}

static MPI_Datatype spread;
static MPI_Op own;

static void own_with_gaps(void)
{
    MPI_Allreduce(in, out, 1000, spread, own, comm);
}

/* As much as makes collx set it up, and then look which way long messages go. */
static void set_up(void)
{
    static char much[1 << 20];

    for (int i = 0; i < 40; i++)
        MPI_Bcast(much, sizeof much, MPI_BYTE, 0, comm);
}

static void *run(void *call)
{
    (*(void (**)(void))call)();
    return NULL;
}

static long deep(void (*call)(void))
{
    static unsigned char *stack;
    pthread_attr_t attributes;
    pthread_t thread;
    long untouched = 0;

    if (!stack)
        stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(stack != MAP_FAILED);
    memset(stack, PAINT, STACK);
    pthread_attr_init(&attributes);
    CHECK(!pthread_attr_setstack(&attributes, stack, STACK));
    CHECK(!pthread_create(&thread, &attributes, run, &call));
    CHECK(!pthread_join(thread, NULL));
    pthread_attr_destroy(&attributes);
    while (stack[untouched] == PAINT)
        untouched++;
    return STACK - untouched;
}

static void print(const char *name, void (*call)(void))
{
    /* The first thread has things to find out. */
    long depth = deep(nothing);

    depth = deep(call) - deep(nothing);
    MPI_Allreduce(MPI_IN_PLACE, &depth, 1, MPI_LONG, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%s %ld\n", name, depth);
}

int main(int argc, char **argv)
{
    int provided;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    CHECK(provided == MPI_THREAD_MULTIPLE);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Type_create_resized(MPI_INT, 0, 12, &spread);
    MPI_Type_commit(&spread);
    MPI_Op_create(add, 1, &own);
    print("first", barrier);
    print("setup", set_up);
    print("barrier", barrier);
    print("bcast", bcast);
    print("allreduce", allreduce);
    print("own", own_with_gaps);
    MPI_Op_free(&own);
    MPI_Type_free(&spread);
    MPI_Comm_free(&comm);
    if (rank == 0)
        printf("good\n");
    MPI_Finalize();
    return 0;
}
