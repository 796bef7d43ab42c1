/* What the cases of weather.c have in common. */
#ifndef COLLX_TESTS_WEATHER_H
#define COLLX_TESTS_WEATHER_H

#include "tests/programs/check.h"

#include <mpi.h>

struct weather {
    const char *name;
    void (*run)(void);
};

/* The end of MPI and of communicators; errors, and handlers of them; what runs out; processes and
 * threads; sessions; what is traced; datatypes.  NULL is the last name. */
extern const struct weather weather_ends[], weather_errors[], weather_lack[], weather_nested[],
    weather_processes[], weather_sessions[], weather_traced[], weather_types[];

/* In MPI_COMM_WORLD, from start() on. */
extern int rank, size;

/* MPI_Init; say that all was good; do so before MPI_Finalize. */
void start(void);
void good(void);
void finish(void);

/* A copy of MPI_COMM_WORLD, whose errors `handler` is told of. */
MPI_Comm comm_with_handler(MPI_Comm_errhandler_function *handler);
/* A handler that counts them, and keeps the class of the last one. */
extern int errors_told, last_class;
void count_error(MPI_Comm *comm, int *error, ...);

/* Where the frames of a call were that has been left there is something else then. */
void use_stack(void);

/* A round of what collx routes, checked. */
void one_round(MPI_Comm comm, int i);
/* More than one: of a communicator that is worth being set up, first of all. */
void rounds(MPI_Comm comm, int count);
/* On `inside` while a library is loaded, and by another thread on `outside` beside that. */
void rounds_in_constructor(MPI_Comm inside, MPI_Comm outside);

#endif
