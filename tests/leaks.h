/* Whether a process that has been forked loses memory for good, which _exit() would not look for.
 * Without AddressSanitizer nobody knows. */
#ifndef COLLX_TESTS_LEAKS_H
#define COLLX_TESTS_LEAKS_H

/* The parent, before it forks: what glibc allocates once is not the child's. */
void leaks_prepare();

/* The child, from now on. */
void leaks_watch();

/* Whether it has lost any since.  At its end. */
bool leaks();

#endif
