/* Two jobs that become one communicator: this program starts itself once more, as often, under
 * env(1).
 *
 * usage: joined PROGRAM WORD…; the words are for env.  tests/run_order.py runs it.  With
 * JOINED_PAST in its environment, the MPI_Init of the first of the two goes past collx.
 */
#include "tests/programs/past.h"

#include <unistd.h>

/* More than it takes until a communicator is set up, of two ranks and of more, which are slower. */
enum { CALLS_OF_TWO = 2100, CALLS = 1100, COPIES = 300 };

/* Whether there is another job now: not every MPI library can start one everywhere. */
static int start(const char *program, char **words, int count, MPI_Comm *other)
{
    char **arguments = calloc((size_t)count + 2, sizeof *arguments);
    int error, size;

    CHECK(arguments);
    for (int i = 0; i < count; i++)
        arguments[i] = words[i];
    arguments[count] = (char *)program;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    error = MPI_Comm_spawn("/usr/bin/env", arguments, size, MPI_INFO_NULL, 0, MPI_COMM_WORLD, other,
                           MPI_ERRCODES_IGNORE);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    free(arguments);
    return !error;
}

int main(int argc, char **argv)
{
    MPI_Comm other, all;
    int rank, size, sum, is_first, is_there;

    if (argc > 1 && getenv("JOINED_PAST"))
        CHECK(!((int (*)(int *, char ***))past_collx("MPI_Init"))(&argc, &argv));
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
    MPI_Comm_size(all, &size);
    for (int call = 0; call < (size > 2 ? CALLS : CALLS_OF_TWO); call++) {
        int one = rank + call;
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, all);
        CHECK(sum == size * call + size * (size - 1) / 2);
        MPI_Bcast(&sum, 1, MPI_INT, call % size, all);
    }
    srand((unsigned)rank + 1);
    /* Now that it is set up, copies of it are on their way while it is used. */
    for (int call = 0; call < COPIES; call++) {
        MPI_Request request;
        MPI_Comm copy;
        MPI_Comm_idup(all, &copy, &request);
        /* Each of them comes to it at another time. */
        for (int i = rand() % 3; i > 0; i--)
            MPI_Test(&request, &is_there, MPI_STATUS_IGNORE);
        for (int i = 0; i < 3; i++) {
            usleep(rand() % 4 ? 0 : (useconds_t)rand() % 300);
            MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, all);
        }
        CHECK(sum == size * (size - 1) / 2);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Comm_free(&copy);
    }
    MPI_Comm_free(&all);
    MPI_Comm_disconnect(&other);
    if (is_first)
        puts("good");
    MPI_Finalize();
    return 0;
}
