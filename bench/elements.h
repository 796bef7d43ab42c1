/* What messages are made of. */
#ifndef COLLX_BENCH_ELEMENTS_H
#define COLLX_BENCH_ELEMENTS_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

enum { ELEMENT_MOST = 128 }; /* no extent is longer */

struct elements {
    const char *name; /* for --of; NULL: one of the plain numbers, of which the first has it */
    MPI_Datatype type;
    size_t size, extent; /* bytes in a message, and from one to the next in memory */
    MPI_Op op;
    /* One element that is worth `value`, of `rank`, and what an element is worth; INT_MIN for what
     * cannot be. */
    void (*put)(char *at, int value, int rank);
    int (*get)(const char *at);
    /* What it is worth when all ranks give one that is worth value(rank, i); NULL: the sum. */
    int (*combined)(int (*value)(int rank, int i), int i, int ranks);
    bool wraps; /* in eight bits */
    /* NULL: messages are so many elements of `type`.  Else a message of `count` elements is one of
     * a type that this makes anew for it, and MPI_Type_free() frees. */
    MPI_Datatype (*make)(int count);
};

/* The kinds that there are, "numbers, long-double, …", in `list`. */
void elements_list(char *list, size_t size);
/* Whether there is such a kind. */
bool elements_exist(const char *name);

/* After MPI_Init, and before MPI_Finalize. */
void elements_init(void);
void elements_finish(void);

/* The bytes of the shortest message of that kind that has so many at least. */
size_t elements_round(const char *name, size_t bytes);
/* Those of that kind for a message of so many, which is one that is rounded. */
const struct elements *elements_find(const char *name, bool reduced, size_t bytes);

#endif
