/* Two jobs that become one communicator: this program starts itself once more, under env(1).
 *
 * usage: joined PROGRAM WORD…; the words are for env.  tests/run_order.py runs it.  With
 * JOINED_PAST in its environment, the MPI_Init of the first of the two goes past collx.
 */
#include "tests/programs/check.h"

#include <dlfcn.h>
#include <mpi.h>

/* More than it takes until a communicator is set up. */
enum { CALLS = 1100 };

/* Whether there is another job now: not every MPI library can start one everywhere. */
static int start(const char *program, char **words, int count, MPI_Comm *other)
{
    char **arguments = calloc((size_t)count + 2, sizeof *arguments);
    int error;

    CHECK(arguments);
    for (int i = 0; i < count; i++)
        arguments[i] = words[i];
    arguments[count] = (char *)program;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    error = MPI_Comm_spawn("/usr/bin/env", arguments, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, other,
                           MPI_ERRCODES_IGNORE);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    free(arguments);
    return !error;
}

/* By asking the MPI library itself, as some languages do. */
static void init_past_collx(int *argc, char ***argv)
{
#ifdef OPEN_MPI
    void *library = dlopen("libmpi.so.40", RTLD_NOLOAD | RTLD_NOW);
#else
    void *library = dlopen("libmpich.so.12", RTLD_NOLOAD | RTLD_NOW);
#endif
    int (*init)(int *, char ***);

    CHECK(library);
    init = (int (*)(int *, char ***))dlsym(library, "MPI_Init");
    CHECK(init && !init(argc, argv));
}

int main(int argc, char **argv)
{
    MPI_Comm other, all;
    int rank, sum, is_first;

    if (argc > 1 && getenv("JOINED_PAST"))
        init_past_collx(&argc, &argv);
    else
        MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&other);
    is_first = other == MPI_COMM_NULL;
    if (is_first && !start(argv[1], argv + 2, argc - 2, &other)) {
        printf("skip\n");
        MPI_Finalize();
        return 0;
    }
    MPI_Intercomm_merge(other, !is_first, &all);
    MPI_Comm_rank(all, &rank);
    for (int call = 0; call < CALLS; call++) {
        int one = rank + call;
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, all);
        CHECK(sum == 2 * call + 1);
        MPI_Bcast(&sum, 1, MPI_INT, call % 2, all);
    }
    MPI_Comm_free(&all);
    MPI_Comm_disconnect(&other);
    if (is_first)
        printf("good\n");
    MPI_Finalize();
    return 0;
}
