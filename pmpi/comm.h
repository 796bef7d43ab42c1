/* What collx knows about each communicator.
 *
 * It hangs on the communicator as an attribute, whose delete callback frees it; a table leads from
 * the handle to it without a call into MPI.  A communicator that is not in the table resolves to
 * collx_comm_unknown, whose slots let the call pass to MPI and then make its state.
 */
#ifndef COLLX_COMM_H
#define COLLX_COMM_H

#include "base/algorithm.h"
#include "pmpi/hold.h"
#include "pmpi/pmpi.h"

#include <limits.h>
#include <stdatomic.h>

/* Routed calls until a communicator is set up, which takes as long as thousands of small calls of
 * two ranks gain.  All ranks count calls alike, so of them nobody has to be asked; of how much has
 * passed one speaks for all, since what it was may be described so that a rank cannot tell.  No
 * clock has a say in any of this: the MPI library combines in another order than collx, and the
 * call from which on that changes has to be the same in every run. */
enum {
    /* After so many of two ranks; of more, which gain more by it, of half as many calls for twice
     * the ranks. */
    COLLX_WARMUP_CALLS = 4096,
    /* After so many calls rank 0 tells whether so many bytes have passed, as far as it knows, if
     * any can have; and then after so many times as many calls.  Ranks that have not met in
     * MPI_Init ask each other. */
    COLLX_WARMUP_EARLY = 16,
    COLLX_WARMUP_BYTES = 1 << 20,
    COLLX_WARMUP_COUNT = 64, /* fewer elements do not come to that, and are not looked at */
    COLLX_WARMUP_FACTOR = 4,
    /* By the same word rank 0 tells whether it is worth it already, by what is known of those that
     * were before (pmpi/history.h); also where only few bytes can have passed, from so many calls
     * on. */
    COLLX_WARMUP_AGAIN = 64,
    /* In a crowd with an MPI library that lets no other rank have the CPU while it waits: calls
     * take milliseconds there, as long as a setup.  Agreed on when MPI_COMM_WORLD comes up. */
    COLLX_WARMUP_CROWD = 2,
    /* In a job that shall survive the loss of ranks. */
    COLLX_WARMUP_NEVER = INT_MAX,
};

/* An algorithm at work on a communicator. */
struct collx_attached {
    const struct collx_algorithm *algorithm;
    struct collx_args args;
    struct collx_slot slot;
    uint8_t route; /* 1 + its index in collx_algorithms; 0 is the MPI library */
};

struct collx_selection; /* pmpi/select.c */
struct collx_identity;  /* pmpi/kept.c */

/* By what algorithms send messages: see pmpi/messages.h. */
struct collx_messages {
    bool open;
    MPI_Comm comm;
    int tag;  /* of those of one communicator */
    int *ear; /* [size]: each rank's in `comm`; NULL: that is this communicator's own */
    int requests;
    MPI_Request *request; /* [requests], of the messages on their way */
};

/* A call that the MPI library has been given and not returned from. */
struct collx_handed {
    bool under_way;
    bool looked, empty; /* its type was looked at before, and whether it has no bytes */
    enum collx_kind kind;
    struct collx_call call;
};

/* What a setup makes: the ways that calls go.  When the communicator is freed the next one of the
 * same ranks may have it as it is (pmpi/kept.h). */
struct collx_routes {
    struct collx_team *team; /* NULL: there are none */
    struct collx_facts facts;
    int leader;     /* the lowest rank on this one's node */
    int node_ranks; /* how many there are on it */
    int attached_count;
    struct collx_attached *attached; /* [attached_count] */
    struct collx_selection *selection[COLLX_ROUTED];
    struct collx_messages messages;
    void *segment; /* shared by the ranks of the node */
    size_t segment_size;
    uint64_t segment_layout; /* see pmpi/segment.h */
    unsigned lives;          /* how often they have been taken over */
    bool names_differ;       /* the communicator's name was not the same on all ranks */
    uint64_t crowd;          /* collx_crowd_own() then: how the team waits follows from it */
};

/* Beside a name: "a communicator of 12 ranks", and some numbers. */
enum { COLLX_LABEL_MORE = 160 };

struct collx_comm {
    struct collx_slot slot[COLLX_ROUTED]; /* what its calls go to; first, since they are hot */
    MPI_Comm comm;
    int rank, size;
    bool inter;
    bool unhung;    /* MPI had no memory to hang it on the communicator */
    bool unhanging; /* collx_comm_unhang() is at it */
    bool gone; /* MPI has deleted it, and may call callbacks yet; or it has another one's handle */

    /* Until it is set up. */
    uint64_t calls;   /* routed ones that went well */
    uint64_t due_at;  /* calls when it is worth it; 0: before the first one */
    uint64_t meet_at; /* calls when it is, or all ask whether it is already */
    uint64_t passed;  /* bytes, as far as this rank knows */
    /* They may come to something, on some rank.  Not of Barriers, nor of Allreduces of a few
     * elements, of which all ranks have as many; a Bcast may have other elements on each. */
    bool may_be_long;
    uintptr_t last_predefined; /* of the types of the calls so far that are; 0: there was none */
    struct collx_handed handed;

    /* collx_agree_has_met(), once that has been found out. */
    enum { COLLX_MET_UNKNOWN, COLLX_MET, COLLX_MET_NOT } met;

    /* Of pmpi/kept.c; NULL: nobody has asked for it, or there is none. */
    struct collx_identity *identity;

    /* For the trace. */
    uint32_t traced; /* 1 + the recorder's number for it; 0: not told of it yet */
    int traced_nodes;
    uint32_t sequence; /* collectives so far, but for what MPI refused */
    uint64_t global;   /* equal on all its ranks */

    /* Since it was set up. */
    struct collx_routes routes;
    int segment_fd;                 /* of the leader, while the others open it; else 0 */
    struct collx_net *rma;          /* the latest of pmpi/rma.h; NULL: none, or of other ranks */
    struct collx_hold hold;         /* of the call that is under way */
    struct collx_comparison *check; /* pmpi/check.h; NULL: its calls are not compared */
    char name[MPI_MAX_OBJECT_NAME + 1]; /* as MPI knows it when it is set up */
    /* For messages: the name, or what can be said. */
    char label[MPI_MAX_OBJECT_NAME + COLLX_LABEL_MORE];
};

extern struct collx_comm collx_comm_unknown;

/* The table: open addressing.  Readers take no lock; writers hold one.  A table that has become
 * too small is replaced and kept, since a reader may still be in it. */
struct collx_comm_entry {
    /* 0: free, and the end of a search; 1: was deleted.  Their comm is collx_comm_unknown. */
    _Atomic uintptr_t handle;
    struct collx_comm *_Atomic comm;
};

struct collx_comm_table {
    struct collx_comm_table *previous;
    unsigned shift, mask;
    struct collx_comm_entry entry[];
};

extern struct collx_comm_table *_Atomic collx_comms;

/* The state of a communicator.  Never NULL. */
static inline struct collx_comm *collx_comm_find(MPI_Comm comm)
{
    uintptr_t handle = (uintptr_t)comm;
    /* Relaxed: what a new table holds is read through the address that is loaded here, which orders
     * it on all machines that Linux still knows, as in its rcu_dereference().  The partner is the
     * release in publish() (comm.c).  On AArch64 an acquiring load waits until this rank's own
     * releases are out, of which the call before has ended with one. */
    struct collx_comm_table *table = atomic_load_explicit(&collx_comms, memory_order_relaxed);

    for (unsigned i = (unsigned)((handle * 0x9e3779b97f4a7c15u) >> table->shift);; i++) {
        struct collx_comm_entry *entry = &table->entry[i & table->mask];
        /* Relaxed: who uses a communicator that another thread made has synchronised with it. */
        uintptr_t found = atomic_load_explicit(&entry->handle, memory_order_relaxed);
        if (__builtin_expect(found == handle, 1))
            return atomic_load_explicit(&entry->comm, memory_order_relaxed);
        if (!found)
            return &collx_comm_unknown;
    }
}

/* A communicator has been seen in a call that MPI found to be right: make its state.  Local.
 * Returns it, or collx_comm_unknown where memory ran out, or the communicator is being freed. */
struct collx_comm *collx_comm_add(MPI_Comm comm);

/* Forget a state that nothing belongs to any more. */
void collx_comm_drop(struct collx_comm *state);

/* MPI is about to free the communicator.  Forget the state before MPI comes to what a program has
 * hung there: else, with an error of a callback, it would be gone on some ranks alone, and MPICH
 * would forget the error.  MPICH may delete the communicator later: there it stays until then, as
 * the first that is deleted, but for one that cannot be hung there again. */
void collx_comm_unhang(struct collx_comm *state);

/* pmpi/comm_free.c: put what frees communicators into the door's table. */
void collx_comm_free_install(void);
/* Whether this thread is freeing that communicator just now, or may be. */
bool collx_comm_is_going(MPI_Comm comm);
/* The same as collx_comm_find(), for who has no slot to call: what is gone is not found any more
 * when another communicator has its handle. */
struct collx_comm *collx_comm_look(MPI_Comm comm);
/* MPI deletes it: whether its state has to stay, as one that is gone. */
bool collx_comm_linger(struct collx_comm *state);
/* All its calls go to the MPI library from now on.  Local, but all its ranks do so between the same
 * two calls. */
void collx_comm_retire(struct collx_comm *state);

/* Until unhush(), errors on the program's communicator come back to us: an MPI that has no
 * communicator left for us must not end the program for it.  Those of other threads come back to
 * them, too.  A handler that one of them sets meanwhile is kept, but for MPI_ERRORS_RETURN, which
 * is what stands there.  In MPICH a communicator that never had one follows MPI_COMM_WORLD's, or in
 * later versions MPI_COMM_SELF's; it does so no more afterwards, nor do its copies, since nothing
 * takes a handler away.  So this is not for those two.  0 or an MPI error. */
int collx_comm_hush(MPI_Comm comm, MPI_Errhandler *handler);
void collx_comm_unhush(MPI_Comm comm, MPI_Errhandler *handler);

/* Read the communicator's name, and make a label of it. */
void collx_comm_name(struct collx_comm *comm);
/* Then: add to the label who its ranks are in MPI_COMM_WORLD, where they have other numbers there:
 * else nobody could tell which process "rank 1 of a communicator of 3 ranks" is. */
void collx_comm_label(struct collx_comm *comm);

/* MPI_Finalize has deleted what hangs on MPI_COMM_SELF, and no session is open.  What calls
 * collectives from then on, as callbacks of MPI_COMM_WORLD do, has them from the MPI library.  Each
 * rank comes by here between the same two of its collectives.  Local. */
void collx_comms_retire(void);
/* The last that is still open of MPI_COMM_WORLD and the sessions is about to end.  What hangs on
 * communicators is freed with them.  Not `callable`: MPI takes no calls any more. */
void collx_comms_finish(bool callable);
/* It has ended: calls on communicators that the program has kept are MPI's to report.  Local. */
void collx_comms_forget(void);

#endif
