/* Programs with sessions: cases of weather.c. */
#include "tests/programs/weather.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Open MPI 5 has them, and MPI 3.1 otherwise. */
#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)

static void open_session(MPI_Session *session)
{
    CHECK(!MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, session));
}

static void open_session_with_threads(MPI_Session *session)
{
    MPI_Info info;

    MPI_Info_create(&info);
    MPI_Info_set(info, "thread_level", "MPI_THREAD_MULTIPLE");
    CHECK(!MPI_Session_init(info, MPI_ERRORS_ARE_FATAL, session));
    MPI_Info_free(&info);
}

static MPI_Comm comm_of_set(MPI_Session session, const char *set, const char *name)
{
    MPI_Group group;
    MPI_Comm comm;

    CHECK(!MPI_Group_from_session_pset(session, set, &group));
    CHECK(!MPI_Comm_create_from_group(group, name, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm));
    MPI_Group_free(&group);
    return comm;
}

/* Of all ranks. */
static MPI_Comm comm_of(MPI_Session session, const char *name)
{
    MPI_Comm comm = comm_of_set(session, "mpi://WORLD", name);

    MPI_Comm_rank(comm, &rank);
    return comm;
}

/* And the communicator that it has had. */
static void close_session(MPI_Session *session, MPI_Comm *comm)
{
    MPI_Comm_free(comm);
    CHECK(!MPI_Session_finalize(session));
}

/* Before MPICH 4.0 has made a communicator of several ranks it crashes in some of its calls. */
static void session_alone(void)
{
    double buf[7] = {0};
    MPI_Session session;
    MPI_Datatype every_other;
    MPI_Comm comm;

    open_session(&session);
    comm = comm_of_set(session, "mpi://SELF", "own");
    MPI_Type_vector(4, 1, 2, MPI_DOUBLE, &every_other);
    MPI_Type_commit(&every_other);
    for (int i = 0; i < 5000; i++) /* past the warm-up */
        CHECK(!MPI_Bcast(buf, 1, every_other, 0, comm));
    MPI_Type_free(&every_other);
    rounds(comm, 50);
    close_session(&session, &comm);
    good();
}

static void sessions(void)
{
    MPI_Session session;
    MPI_Comm comm;

    open_session(&session);
    comm = comm_of(session, "collx");
    rounds(comm, 50);
    close_session(&session, &comm);
    good();
}

static void constructor_session(void)
{
    MPI_Session session;
    MPI_Comm inside, outside;

    open_session_with_threads(&session);
    inside = comm_of(session, "inside");
    outside = comm_of(session, "outside");
    rounds_in_constructor(inside, outside);
    MPI_Comm_free(&inside);
    close_session(&session, &outside);
    good();
}

/* MPI_Init after the last session has ended. */
static void begins_again(void)
{
    sessions();
    start();
    rounds(MPI_COMM_WORLD, 50);
    finish();
}

static void *open_in_thread(void *session)
{
    open_session(session);
    return NULL;
}

/* The second thread makes its first call while the first thread's is still bringing collx in. */
static void two_sessions(void)
{
    static const char *const names[] = {"first", "second"};
    MPI_Session session[2];
    MPI_Comm comm[2];
    pthread_t id[2];

    for (int i = 0; i < 2; i++) {
        CHECK(!pthread_create(&id[i], NULL, open_in_thread, &session[i]));
        usleep(100000);
    }
    for (int i = 0; i < 2; i++)
        CHECK(!pthread_join(id[i], NULL));
    for (int i = 0; i < 2; i++)
        comm[i] = comm_of(session[i], names[i]);
    for (int i = 0; i < 2; i++) {
        rounds(comm[i], 50);
        close_session(&session[i], &comm[i]);
    }
    good();
}

/* A session goes on when MPI_COMM_WORLD has gone. */
static void session_outlives(void)
{
    MPI_Session session;
    MPI_Comm comm;
    MPI_Datatype every_other;
    int data[8] = {0};

    start();
    open_session(&session);
    comm = comm_of(session, "collx");
    MPI_Type_vector(4, 1, 2, MPI_INT, &every_other);
    MPI_Type_commit(&every_other);
    rounds(MPI_COMM_WORLD, 10);
    rounds(comm, 10);
    MPI_Finalize();
    if (rank == 0)
        data[6] = 6;
    MPI_Bcast(data, 1, every_other, 0, comm);
    CHECK(data[6] == 6);
    rounds(comm, 10);
    MPI_Type_free(&every_other);
    close_session(&session, &comm);
    good();
}

/* A session's communicator that is not used before that. */
static void session_used_late(void)
{
    MPI_Session session;
    MPI_Comm comm;

    start();
    open_session(&session);
    comm = comm_of(session, "collx");
    MPI_Finalize();
    rounds(comm, 10);
    close_session(&session, &comm);
    good();
}

static void *rounds_of_another_thread(void *comm)
{
    if (rank == 0) /* MPI_Init is over here, and not yet where the others begin */
        usleep(1000000);
    rounds(*(MPI_Comm *)comm, 10);
    return NULL;
}

/* MPI_COMM_WORLD comes up, on rank 0 and on the others after so many microseconds, while another
 * thread uses a session's communicator. */
static void come_up_beside(void *(*use)(void *), unsigned first, unsigned others)
{
    MPI_Session session;
    MPI_Comm comm;
    pthread_t other;
    int provided;

    open_session_with_threads(&session);
    comm = comm_of(session, "collx");
    CHECK(!pthread_create(&other, NULL, use, &comm));
    usleep(rank == 0 ? first : others);
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
    CHECK(!pthread_join(other, NULL));
    finish();
    close_session(&session, &comm);
}

/* One that is used on some ranks before MPI_COMM_WORLD comes up and on another after that. */
static void session_used_meanwhile(void)
{
    come_up_beside(rounds_of_another_thread, 500000, 500000);
}

static void *bcasts_of_another_thread(void *comm)
{
    static char bytes[65536];

    if (rank == 0) /* MPI_Init has begun here, and not yet where the others begin */
        usleep(600000);
    for (int i = 0; i < 100; i++)
        CHECK(!MPI_Bcast(bytes, sizeof bytes, MPI_CHAR, 1, *(MPI_Comm *)comm));
    return NULL;
}

/* Bcasts, of which the ranks ask each other whether they come to something: on rank 0 while
 * MPI_COMM_WORLD comes up there, on the others before that. */
static void session_asks_meanwhile(void)
{
    come_up_beside(bcasts_of_another_thread, 200000, 1200000);
}

/* Rank 0 alone has one when MPI_COMM_WORLD comes up. */
static void session_of_one(void)
{
    const char *own = getenv("PMIX_RANK") ? getenv("PMIX_RANK") : getenv("PMI_RANK");
    const bool has = own && !strcmp(own, "0");
    MPI_Session session;
    MPI_Comm comm;

    if (has) {
        open_session(&session);
        comm = comm_of_set(session, "mpi://SELF", "own");
        rounds(comm, 1);
    }
    start();
    CHECK(has == (rank == 0));
    for (int i = 0; i < 2; i++) {
        rounds(MPI_COMM_WORLD, 50);
        if (has)
            rounds(comm, 50);
    }
    if (has)
        close_session(&session, &comm);
    finish();
}

static MPI_Comm taken_in_turns;
static sem_t world_gone;

static void *use_in_turns(void *unused)
{
    if (rank == 0)
        sem_wait(&world_gone);
    for (int i = 0; i < 100; i++)
        one_round(taken_in_turns, i);
    return unused;
}

/* Another thread uses a session's communicator for the first time: before MPI_COMM_WORLD has gone,
 * and on rank 0 after that. */
static void session_used_in_turns(void)
{
    MPI_Session session;
    pthread_t thread;
    int level;

    CHECK(!MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level));
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    open_session_with_threads(&session);
    taken_in_turns = comm_of(session, "collx");
    CHECK(!pthread_create(&thread, NULL, use_in_turns, NULL));
    if (rank)
        usleep(200000);
    MPI_Finalize();
    sem_post(&world_gone);
    CHECK(!pthread_join(thread, NULL));
    close_session(&session, &taken_in_turns);
    good();
}

static MPI_Session slow_session;
static pthread_t slow_thread;
static sem_t slow_begun, slow_may_end;

/* slow_end.c calls this where MPI_Session_finalize begins. */
void session_ends(void);
void session_ends(void)
{
    sem_post(&slow_begun);
    sem_wait(&slow_may_end);
}

static void start_with_threads(void)
{
    int level;

    CHECK(!MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level));
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
}

static void *end_slowly(void *session)
{
    CHECK(!MPI_Session_finalize(session));
    return NULL;
}

/* Another thread ends a session that has been used, until let_it_end(). */
static void begin_to_end(void)
{
    MPI_Comm comm;

    open_session_with_threads(&slow_session);
    comm = comm_of(slow_session, "slow");
    rounds(comm, 50);
    MPI_Comm_free(&comm);
    CHECK(!pthread_create(&slow_thread, NULL, end_slowly, &slow_session));
    sem_wait(&slow_begun);
}

static void let_it_end(void)
{
    sem_post(&slow_may_end);
    CHECK(!pthread_join(slow_thread, NULL));
}

static void session_meanwhile(void)
{
    MPI_Session session;
    MPI_Comm comm;

    begin_to_end();
    open_session_with_threads(&session);
    comm = comm_of(session, "meanwhile");
    rounds(comm, 50);
    let_it_end();
    rounds(comm, 50);
    sem_post(&slow_may_end); /* the other one */
    close_session(&session, &comm);
    good();
}

static void init_meanwhile(void)
{
    begin_to_end();
    start_with_threads();
    rounds(MPI_COMM_WORLD, 50);
    let_it_end();
    rounds(MPI_COMM_WORLD, 50);
    finish();
}

static void finalize_meanwhile(void)
{
    start_with_threads();
    rounds(MPI_COMM_WORLD, 50);
    begin_to_end();
    MPI_Finalize();
    let_it_end();
    good();
}

#define CASE(name, function)                                                                       \
    {                                                                                              \
        name, function                                                                             \
    }
#else
static void skip(void)
{
    puts("skip");
}
#define CASE(name, function)                                                                       \
    {                                                                                              \
        name, skip                                                                                 \
    }
#endif

const struct weather weather_sessions[] = {
    CASE("sessions", sessions),
    CASE("session-alone", session_alone),
    CASE("constructor-session", constructor_session),
    CASE("two-sessions", two_sessions),
    CASE("begins-again", begins_again),
    CASE("session-outlives", session_outlives),
    CASE("session-used-late", session_used_late),
    CASE("session-used-meanwhile", session_used_meanwhile),
    CASE("session-asks-meanwhile", session_asks_meanwhile),
    CASE("session-used-in-turns", session_used_in_turns),
    CASE("session-of-one", session_of_one),
    CASE("session-meanwhile", session_meanwhile),
    CASE("init-meanwhile", init_meanwhile),
    CASE("finalize-meanwhile", finalize_meanwhile),
    {0},
};
