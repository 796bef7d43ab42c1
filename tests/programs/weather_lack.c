/* Programs that take much of what there is, or find none of it left: cases of weather.c. */
#include "tests/programs/weather.h"

#include "tests/programs/open_files.h"
#include "tests/programs/set_up.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

struct footprint {
    long fds, maps, kib;
};

static struct footprint measure(void)
{
    struct footprint is = {.fds = open_files()};
    char line[4096];

    FILE *file = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, file))
        is.maps++;
    fclose(file);
    file = fopen("/proc/self/statm", "r");
    long pages = 0;
    CHECK(fscanf(file, "%*s %ld", &pages) == 1);
    fclose(file);
    is.kib = pages * (sysconf(_SC_PAGESIZE) / 1024);
    return is;
}

/* 10,000 communicators, used and freed; says how much a rank has grown over the last 9,000. */
static void communicators(void)
{
    struct footprint begin = {0}, end;
    long growth[3], most[3];

    start();
    for (int i = 0; i < 10000; i++) {
        MPI_Comm comm;
        if (i == 1000)
            begin = measure();
        if (i % 2)
            MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        else
            MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm);
        rounds(comm, i % 4 == 3 ? 12 : 1); /* some show that they are used, and get a route */
        MPI_Comm_free(&comm);
    }
    end = measure();
    growth[0] = end.fds - begin.fds;
    growth[1] = end.maps - begin.maps;
    growth[2] = end.kib - begin.kib;
    MPI_Reduce(growth, most, 3, MPI_LONG, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("growth: fds %ld maps %ld kib %ld\n", most[0], most[1], most[2]);
    finish();
}

/* MPI has no communicator left for collx, and errors are fatal. */
static void no_communicator(void)
{
#ifdef OPEN_MPI
    puts("skip"); /* it has so many that taking all takes half a minute */
#else
    MPI_Comm comm;

    start();
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    while (!MPI_Comm_dup(MPI_COMM_WORLD, &comm))
        ;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    rounds(MPI_COMM_WORLD, 50);
    finish();
#endif
}

/* The program has as many files open as it may. */
static void no_files(void)
{
    struct rlimit limit;
    int spare, most = 0;

    start();
    CHECK(!getrlimit(RLIMIT_NOFILE, &limit));
    while ((spare = dup(0)) >= 0 && spare < 200)
        most = spare;
    limit.rlim_cur = (rlim_t)most;
    CHECK(!setrlimit(RLIMIT_NOFILE, &limit));
    for (int i = 0; i < 5; i++) {
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        rounds(comm, 20);
        MPI_Comm_free(&comm);
    }
    for (; most > 100; most--)
        close(most);
    finish();
}

/* Fills /dev/shm when MPI has taken what it needs, and only then uses collectives. */
static void full_shm(void)
{
    static const char zeros[65536];
    const char *name = "/dev/shm/filled-by-a-test";
    int fd = -1;

    start();
    if (rank == 0) {
        fd = open(name, O_CREAT | O_WRONLY, 0600);
        CHECK(fd >= 0);
        for (size_t chunk = sizeof zeros; chunk; chunk /= 2)
            while (write(fd, zeros, chunk) == (ssize_t)chunk)
                ;
    }
    /* Nothing long: the MPI library has memory there, too, and has not touched all of it. */
    for (int i = 0; i < 50; i++)
        one_round(MPI_COMM_WORLD, i);
    if (rank == 0)
        unlink(name);
    finish();
}

/* One block of memory that one rank does not get, each of those that a communicator takes until it
 * is set up, in its turn.  `again`: it can have what the one before it had, but for that. */
static void blocks_missing(bool again)
{
    int *after = dlsym(RTLD_DEFAULT, "no_memory_after"), left = 1;

    CHECK(after);
    start();
    for (int i = 0; left; i++) {
        MPI_Comm comm;
        char name[16];
        CHECK(i < 100);
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        snprintf(name, sizeof name, "%d", again ? 0 : i);
        MPI_Comm_set_name(comm, name);
        *after = rank == i % size ? i / size : -1;
        use_until_set_up(comm);
        /* As long as it has counted down to its end, on any. */
        left = *after < 0 && rank == i % size;
        *after = -1;
        MPI_Allreduce(MPI_IN_PLACE, &left, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        rounds(comm, 10);
        MPI_Comm_free(&comm);
        if (rank == 0 && !left)
            printf("%d blocks\n", i / size);
    }
    finish();
}

static void one_block_missing(void)
{
    blocks_missing(false);
}

static void one_block_missing_again(void)
{
    blocks_missing(true);
}

/* The loader of libraries has none left once MPI is up. */
static void none_for_loader(void)
{
    const char **none_for = dlsym(RTLD_DEFAULT, "no_memory_for");
    MPI_Comm comm;

    CHECK(none_for);
    start();
    *none_for = "/ld-";
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    rounds(comm, 20);
    MPI_Comm_free(&comm);
    rounds(MPI_COMM_WORLD, 20);
    *none_for = NULL;
    finish();
}

/* One rank has none for a call, of data that has to be packed: it gets an error, and its handler is
 * told, as by the MPI library; the others have their results. */
static void none_for_call(void)
{
    enum { BLOCKS = 20000 };
    static int at[BLOCKS], length[BLOCKS], data[5 * BLOCKS];
    const char **none_for = dlsym(RTLD_DEFAULT, "no_memory_for");
    MPI_Datatype scattered;

    CHECK(none_for);
    start();
    for (int i = 0; i < BLOCKS; i++) {
        at[i] = 4 * i + i % 7 % 3;
        length[i] = 1 + i % 3 % 2;
    }
    MPI_Type_indexed(BLOCKS, length, at, MPI_INT, &scattered);
    MPI_Type_commit(&scattered);
    MPI_Comm comm = comm_with_handler(count_error);
    rounds(comm, 20);
    for (int turn = 0; turn < 3; turn++) {
        const bool poor = turn == 1 && rank == 1;
        int class = MPI_SUCCESS;
        for (int i = 0; i < BLOCKS; i++)
            data[at[i]] = rank ? -1 : turn + i;
        errors_told = 0;
        *none_for = poor ? "/libcollx-" : NULL;
        MPI_Error_class(MPI_Bcast(data, 1, scattered, 0, comm), &class);
        *none_for = NULL;
        CHECK(class == (poor ? MPI_ERR_NO_MEM : MPI_SUCCESS));
        CHECK(errors_told == poor && (!poor || last_class == MPI_ERR_NO_MEM));
        for (int i = 0; i < BLOCKS && !poor; i++)
            CHECK(data[at[i]] == turn + i);
    }
    MPI_Type_free(&scattered);
    rounds(comm, 20);
    MPI_Comm_free(&comm);
    finish();
}

const struct weather weather_lack[] = {
    {"communicators", communicators},
    {"no-communicator", no_communicator},
    {"no-files", no_files},
    {"full-shm", full_shm},
    {"one-block-missing", one_block_missing},
    {"one-block-missing-again", one_block_missing_again},
    {"none-for-loader", none_for_loader},
    {"none-for-call", none_for_call},
    {0},
};
