/* collx-bench: what its files share.  Errors end the job: see fail(). */
#ifndef COLLX_BENCH_H
#define COLLX_BENCH_H

#include "base/collectives.h"
#include "base/spread.h"

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { ROUTES_MOST = 16, NAME_MOST = 64, POINTS_MOST = 256, CALLS_MOST = 64 };

/* Says what is wrong and ends the job. */
void fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* For a person at a terminal: seconds so far, of about so many. */
void show_progress(double elapsed, double seconds, int sweep);
void show_progress_end(void);

/* --- machine.c: the ranks, their CPUs, the time, and the state that the machine is in ----------
 */

/* How far apart the caches of two ranks are.  Virtual machines move between CPUs, so it changes. */
enum state { STATE_NEAR, STATE_MIDDLE, STATE_FAR, STATES, STATE_NONE = STATES };

struct machine {
    int rank, size;
    int cpus;     /* that the ranks may use, all together */
    bool crowded; /* more ranks than those */
};
extern struct machine machine;

/* After routes_find_own().  Collective, as are all of these.  Ranks on several nodes are an error.
 */
void machine_init(void);

/* All ranks are here. */
void machine_meet(void);

/* All ranks leave at the same moment, which is returned, in ticks; *late: this one did not. */
uint64_t machine_start(bool *late);
uint64_t machine_ticks(void);
double machine_ns(uint64_t ticks);

/* A number of rank 0, on all. */
uint64_t machine_agree(uint64_t value);

/* Everybody posts a flag and waits for those of all others: what a collective cannot do without. */
void machine_exchange(void);

/* The times of `calls` calls, in ns: from the common start to the end on the last rank.  `end` is
 * this rank's; < 0: it was late, and the call does not count.  Returns on rank 0 how many do, whose
 * times are in `times`; on others 0. */
int machine_slowest(const double *end, int calls, double *times);

/* One way of a cache line from rank 0 to rank 1, or back, in ns, on rank 0; 0 where there is one
 * rank, or no two CPUs for the two. */
double machine_probe(void);

/* The state that one-way times before and after a round mean, STATE_NONE where it has changed in
 * between. */
enum state machine_state(double before, double after);
const char *machine_state_name(enum state state);

/* --- routes.c: the ways a collective can go ----------------------------------------------------
 */

struct route {
    char name[NAME_MOST]; /* "mpi", "mpi:sm", "collx", "shm" */
    bool own;             /* straight to the MPI library, past collx */
    MPI_Comm comm;
};

extern struct route routes[ROUTES_MOST]; /* the first is "mpi" */
extern int route_count;

/* The MPI library's own functions, from its own handle: PMPI_X by name is collx's. */
struct own {
    int (*Barrier)(MPI_Comm);
    int (*Bcast)(void *, int, MPI_Datatype, int, MPI_Comm);
    int (*Allreduce)(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);
    int (*Comm_dup)(MPI_Comm, MPI_Comm *);
    int (*Comm_free)(MPI_Comm *);
};
extern struct own own;
/* Those by name: collx's, where it is loaded. */
extern const struct own through;

/* Before MPI_Init: leaves COLLX_POLICY naming a policy that gives each communicator of
 * routes_init() its route.  What the user has set there holds for route "collx". */
void routes_prepare(void);
/* After it.  Finds the MPI library's functions. */
void routes_find_own(void);
/* Whether MPI_X by name is collx's, and collx is not switched off. */
bool routes_has_collx(void);
/* `peers`: components of Open MPI to compare with, besides its choice; "" for none, NULL for "sm"
 * where there is one. */
void routes_init(const char *peers);
void routes_finish(void);

/* What runs, by the account that collx gave of it ("shm", "pmpi", "nx(n=6)"); for the MPI library's
 * own routes their name. */
const char *route_runs(const struct route *route, enum collx_kind kind, size_t bytes);

/* Whether it is worth measuring: no earlier route is the same here. */
bool route_counts(int route, enum collx_kind kind, size_t bytes);

/* --- measure.c ---------------------------------------------------------------------------------
 */

struct round {
    enum state state;
    double flag; /* ns, one way; mean of before and after */
    double bare; /* ns for everybody to post a flag and see all others' */
    double copy; /* ns for a memcpy of so many bytes, on all ranks at once */
    double read; /* ns for a copy of so many bytes that another rank has just written, on all ranks
                    that receive some at once */
    double ns[ROUTES_MOST]; /* mean of the middle half of the batch, less that of calls of nothing
                               in the same round; < 0: not measured */
};

/* One collective and size. */
struct point {
    enum collx_kind kind;
    size_t bytes;
    int rounds, room;
    double spent; /* s */
    struct round *round;
};

/* How to measure. */
struct manner {
    double seconds;  /* in all, about */
    double batch_us; /* each batch of calls, about */
    const char *of;  /* elements.h: what messages are made of */
    bool kept;       /* senders send what they sent in the call before, and do not write it anew */
    bool one_root;   /* rank 0 is the root of every Bcast; else each rank in turn */
    bool row;        /* calls follow each other at once; else all ranks start each together */
};

/* Fills points[i].round.  Checks results.  The rounds are on rank 0. */
void measure(struct point *points, int count, const struct manner *manner);

/* What collx adds to a call on one rank; prints it. */
void measure_overhead(const struct point *points, int count, const struct manner *manner);

/* --- life.c ------------------------------------------------------------------------------------
 */

/* Communicators that make calls[] calls each, through collx and through the MPI library itself in
 * turn; prints it. */
void measure_lives(const struct point *points, int count, const int *calls, int calls_count,
                   const struct manner *manner);

/* --- print.c: rank 0 alone ---------------------------------------------------------------------
 */

void print_text(FILE *to, const struct point *points, int count);
void print_csv(FILE *to, const struct point *points, int count);
/* From a CSV file; runs gnuplot.  Returns whether that worked. */
bool print_svg(const char *svg, const char *csv);

#endif
