/* Has an MPI library say that it takes buffers in Level Zero's memory.  Loaded like
 * wide_integers.c. */
int MPIX_Query_ze_support(void);

int MPIX_Query_ze_support(void)
{
    return 1;
}
