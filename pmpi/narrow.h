/* The functions for large counts where the MPI library has none. */
#ifndef COLLX_NARROW_H
#define COLLX_NARROW_H

/* libcollx.so has MPI_Bcast_c and its kin whichever MPI library comes behind it, and a program that
 * looks whether they are there finds them.  Put those that this MPI library lacks into the door's
 * tables, as if it had them: each calls the function with int counts, and fails if they do not fit.
 * Where a tool wants to see that one, it goes there first. */
void collx_narrow_install(void);

#endif
