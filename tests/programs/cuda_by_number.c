/* Has an MPI library take buffers in CUDA's memory, and say so as MPICH 3.4 does: asked by the
 * function that others have as well, it ends the program.  Loaded like wide_integers.c. */
#include <stdlib.h>

int MPIX_Query_cuda_support(void);
int MPIX_GPU_query_support(int gpu, int *takes);

int MPIX_Query_cuda_support(void)
{
    abort();
}

/* Whoever asks for a GPU that it does not know is told by an error handler. */
int MPIX_GPU_query_support(int gpu, int *takes)
{
    if (gpu > 1)
        abort();
    *takes = gpu == 0;
    return 0;
}
