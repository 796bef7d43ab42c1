/* What the two files of the fuzzer share; fuzz.c says what it is. */
#ifndef COLLX_TESTS_FUZZ_H
#define COLLX_TESTS_FUZZ_H

#include "conformance.h"

enum { FUZZ_BYTES_MAX = 1 << 20, FUZZ_COMMS = 5 };

struct fuzz_group {
    const char *name;
    MPI_Comm comm; /* MPI_COMM_NULL: this rank is not in it */
    int rank, size;
    int world[CF_RANKS_MAX]; /* by rank */
    struct cf_random agreed; /* goes alike on all its ranks */
};

struct fuzz_thread {
    int id, steps;
    struct fuzz_group group[FUZZ_COMMS];
    struct cf_random order; /* goes alike on all ranks: whose turn it is */
    struct cf_random own;   /* this rank's alone */
    unsigned char *send, *receive, *expect;
    void *sum, *mine; /* elements without gaps */
    char where[100];
};

/* Of what the calls are made: types, ops and buffers. */
void fuzz_calls_init(void);
void fuzz_calls_finish(void);
void fuzz_buffers_init(struct fuzz_thread *thread);

/* One call, and whether its result is right.  `time` grows from barrier to barrier of a thread. */
void fuzz_barrier(struct fuzz_thread *t, const struct fuzz_group *g, uint64_t time);
void fuzz_bcast(struct fuzz_thread *t, struct fuzz_group *g, int64_t bytes, bool library_too);
void fuzz_allreduce(struct fuzz_thread *t, struct fuzz_group *g, int64_t bytes, bool library_too);

#endif
