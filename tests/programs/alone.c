/* A program of one process, or a module of one, that is linked with what stands in for MPI there
 * (stand_in.c). */
#include <stdio.h>

int MPI_Init(int *argc, char ***argv);
int MPI_Allreduce(const void *in, void *out, int count, int type, int op, int comm);
int MPI_Finalize(void);

__attribute__((visibility("default"))) int main(int argc, char **argv)
{
    const int in[] = {6, 7};
    int out[] = {0, 0};
    int begun = MPI_Init(&argc, &argv);
    int reduced = MPI_Allreduce(in, out, 2, sizeof *in, 0, 0);
    int ended = MPI_Finalize();

    printf("MPI_Init %d MPI_Allreduce %d MPI_Finalize %d result %d %d\n", begun, reduced, ended,
           out[0], out[1]);
    return begun || reduced || ended;
}
