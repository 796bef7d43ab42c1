/* Makes of an MPI library one whose jobs shall survive the loss of ranks, as those of Open MPI 5
 * under mpirun --with-ft.  Loaded like wide_integers.c. */
#include <stdbool.h>

extern bool ompi_ftmpi_enabled;
bool ompi_ftmpi_enabled = true;
