/* Buffers at which no CPU may load or store, as in the memory of a GPU: usage: gpu DRIVER.
 *
 * DRIVER is a library that stands in for a GPU's, and for the MPI library, which here has not been
 * made for GPUs, the pages are opened when it touches them.  Whoever touches them else, of
 * libcollx.so and what it has loaded, ends the job.  Prints "good" at its end. */
#include "check.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <mpi.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST = 1 << 17, BYTES = MOST * 8, ROUNDS = 12, FRAMES = 32 };

static int rank, size;
static char *memory; /* two buffers of BYTES */

static void say(const char *text)
{
    if (write(STDERR_FILENO, text, strlen(text)) < 0)
        _exit(2);
}

/* Who called the C library that touched it, or did so itself. */
static void touched(int signal, siginfo_t *info, void *context)
{
    void *frame[FRAMES];
    const int frames = backtrace(frame, FRAMES);
    const char *at = info->si_addr;

    (void)signal, (void)context;
    if (at < memory || at >= memory + 2 * BYTES)
        _exit(3);
    /* The first two are this function and the kernel's return from it. */
    for (int i = 2; i < frames; i++) {
        Dl_info object;
        if (!dladdr(frame[i], &object) || strstr(object.dli_fname, "libc.so"))
            continue;
        if (strstr(object.dli_fname, "libcollx")) {
            say("touched by ");
            say(object.dli_fname);
            say("\n");
            _exit(4);
        }
        break;
    }
    mprotect(memory, 2 * BYTES, PROT_READ | PROT_WRITE);
}

static void close_memory(void)
{
    CHECK(!mprotect(memory, 2 * BYTES, PROT_NONE));
}

static void open_memory(void)
{
    CHECK(!mprotect(memory, 2 * BYTES, PROT_READ | PROT_WRITE));
}

static double value(int of, int round, int i)
{
    return of * 3 + round + i % 7;
}

/* Which ranks have which of their buffers there changes from round to round. */
static void use_all(int count)
{
    static double host[2][MOST];

    for (int round = 0; round < ROUNDS; round++) {
        const int there = round + rank, root = round % size;
        double *send = there & 1 ? (double *)memory : host[0];
        double *receive = there & 2 ? (double *)(memory + BYTES) : host[1];

        open_memory();
        for (int i = 0; i < count; i++)
            send[i] = value(rank, round, i);
        close_memory();
        MPI_Bcast(send, count, MPI_DOUBLE, root, MPI_COMM_WORLD);
        open_memory();
        for (int i = 0; i < count; i++) {
            CHECK(send[i] == value(root, round, i));
            send[i] = value(rank, round, i);
        }
        if (round & 4)
            memcpy(receive, send, (size_t)count * sizeof *send);
        close_memory();
        MPI_Allreduce(round & 4 ? MPI_IN_PLACE : send, receive, count, MPI_DOUBLE, MPI_SUM,
                      MPI_COMM_WORLD);
        open_memory();
        for (int i = 0; i < count; i++) {
            double sum = 0;
            for (int other = 0; other < size; other++)
                sum += value(other, round, i);
            CHECK(receive[i] == sum);
        }
    }
}

/* Of types whose elements are there, while the address that goes with them is not. */
static void use_elsewhere(void)
{
    enum { ELEMENTS = 3 };
    static char host[64];
    double *data = (double *)memory;
    char *const address[] = {MPI_BOTTOM, host, memory - sizeof host};

    for (int kind = 0; kind < 3; kind++) {
        const MPI_Aint base = kind == 0 ? 0 : (MPI_Aint)address[kind];
        const int ones[ELEMENTS] = {1, 1, 1};
        MPI_Aint at[ELEMENTS];
        MPI_Datatype type;
        for (int i = 0; i < ELEMENTS; i++)
            at[i] = (MPI_Aint)&data[2 * i] - base;
        MPI_Type_create_hindexed(ELEMENTS, ones, at, MPI_DOUBLE, &type);
        MPI_Type_commit(&type);
        open_memory();
        for (int i = 0; i < ELEMENTS; i++)
            data[2 * i] = rank == 0 ? kind + i + 1 : 0;
        close_memory();
        MPI_Bcast(address[kind], 1, type, 0, MPI_COMM_WORLD);
        open_memory();
        for (int i = 0; i < ELEMENTS; i++)
            CHECK(data[2 * i] == kind + i + 1);
        close_memory();
        MPI_Type_free(&type);
    }
}

int main(int argc, char **argv)
{
    static const int counts[] = {1, 8, 20, 512, 513, 5000, 100000, MOST};
    struct sigaction action = {.sa_sigaction = touched, .sa_flags = SA_SIGINFO};
    void *frame[1];

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    memory = mmap(NULL, 2 * BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(argc == 2 && memory != MAP_FAILED);
    /* As long as there is no driver. */
    double one = 1, all = 0;
    for (int call = 0; call < 100; call++)
        MPI_Allreduce(&one, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    CHECK(all == size);

    void *driver = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    CHECK(driver);
    /* Of the name that it stands in under. */
    const char *file = strstr(argv[1], "gpu_driver-");
    char name[64];
    CHECK(file);
    snprintf(name, sizeof name, "%s", file + strlen("gpu_driver-"));
    *strrchr(name, '.') = '\0';
    if (dlmopen(LM_ID_BASE, name, RTLD_LAZY | RTLD_NOLOAD) != driver) {
        MPI_Finalize();
        if (rank == 0)
            puts("the real driver is loaded");
        return 0;
    }
    void (*own)(void *, size_t) = (void (*)(void *, size_t))dlsym(driver, "standin_own");
    CHECK(own);
    own(memory, 2 * (size_t)BYTES);
    backtrace(frame, 1); /* it loads a library when it is first called */
    CHECK(!sigaction(SIGSEGV, &action, NULL));
    for (unsigned i = 0; i < sizeof counts / sizeof *counts; i++)
        use_all(counts[i]);
    use_elsewhere();
    /* What HIP was asked is none of the program's business; that its own call has failed is. */
    int (*last_error)(void) = (int (*)(void))dlsym(driver, "hipPeekAtLastError");
    void (*fail)(int) = (void (*)(int))dlsym(driver, "standin_fail");
    CHECK(last_error && fail && last_error() == 0);
    fail(99);
    MPI_Allreduce(&one, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    CHECK(last_error() != 0);
    MPI_Finalize();
    if (rank == 0)
        puts("good");
}
