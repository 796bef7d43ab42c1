/* Programs that begin or end MPI, a session or a communicator in ways of their own: cases of
 * weather.c. */
#include "tests/programs/weather.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Open MPI 5 has them, and MPI 3.1 otherwise. */
#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
#define HAS_SESSIONS

static MPI_Session session_with_threads(void)
{
    MPI_Session session;
    MPI_Info info;

    MPI_Info_create(&info);
    MPI_Info_set(info, "thread_level", "MPI_THREAD_MULTIPLE");
    CHECK(!MPI_Session_init(info, MPI_ERRORS_ARE_FATAL, &session));
    MPI_Info_free(&info);
    return session;
}

static MPI_Comm comm_of(MPI_Session session, const char *name)
{
    MPI_Group group;
    MPI_Comm comm;

    CHECK(!MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
    CHECK(!MPI_Comm_create_from_group(group, name, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm));
    MPI_Group_free(&group);
    return comm;
}
#endif

static void aborts(void)
{
    start();
    rounds(MPI_COMM_WORLD, 50);
    if (rank == size - 1)
        MPI_Abort(MPI_COMM_WORLD, 42);
    for (;;)
        MPI_Barrier(MPI_COMM_WORLD);
}

static void before_init(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
}

static void after_finalize(void)
{
    int value = 0, sum;

    start();
    rounds(MPI_COMM_WORLD, 50);
    MPI_Finalize();
    MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

/* On a communicator that the program has not freed. */
static void after_finalize_kept(void)
{
    int value = 0, sum;
    MPI_Comm comm;

    start();
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    rounds(comm, 50);
    MPI_Finalize();
    MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, comm);
}

static void no_finalize(void)
{
    start();
    rounds(MPI_COMM_WORLD, 50);
    if (rank == 0)
        printf("good\n");
    fflush(stdout);
    exit(0);
}

/* The same, for who looks at what the launcher makes of ranks that do not leave together. */
static void no_finalize_late(void)
{
    start();
    rounds(MPI_COMM_WORLD, 50);
    if (rank > 0)
        usleep(300000);
    exit(0);
}

static void sessions(void)
{
#ifdef HAS_SESSIONS
    MPI_Session session;
    MPI_Comm comm;

    CHECK(!MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session));
    comm = comm_of(session, "collx");
    MPI_Comm_rank(comm, &rank);
    rounds(comm, 50);
    MPI_Comm_free(&comm);
    CHECK(!MPI_Session_finalize(&session));
    if (rank == 0)
        printf("good\n");
#else
    puts("skip");
#endif
}

static void constructor_session(void)
{
#ifdef HAS_SESSIONS
    MPI_Session session = session_with_threads();
    MPI_Comm comm[2];

    for (int i = 0; i < 2; i++)
        comm[i] = comm_of(session, i ? "outside" : "inside");
    MPI_Comm_rank(comm[0], &rank);
    rounds_in_constructor(comm[0], comm[1]);
    for (int i = 0; i < 2; i++)
        MPI_Comm_free(&comm[i]);
    CHECK(!MPI_Session_finalize(&session));
    if (rank == 0)
        printf("good\n");
#else
    puts("skip");
#endif
}

/* MPI_Init after the last session has ended. */
static void begins_again(void)
{
#ifdef HAS_SESSIONS
    sessions();
    start();
    rounds(MPI_COMM_WORLD, 50);
    finish();
#else
    puts("skip");
#endif
}

#ifdef HAS_SESSIONS
static void *open_session(void *session)
{
    CHECK(!MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, session));
    return NULL;
}
#endif

/* The second thread makes its first call while the first thread's is still bringing collx in. */
static void two_sessions(void)
{
#ifdef HAS_SESSIONS
    static const char *const names[] = {"first", "second"};
    MPI_Session session[2];
    MPI_Comm comm[2];
    pthread_t id[2];

    for (int i = 0; i < 2; i++) {
        CHECK(!pthread_create(&id[i], NULL, open_session, &session[i]));
        usleep(100000);
    }
    for (int i = 0; i < 2; i++)
        CHECK(!pthread_join(id[i], NULL));
    for (int i = 0; i < 2; i++)
        comm[i] = comm_of(session[i], names[i]);
    MPI_Comm_rank(comm[0], &rank);
    for (int i = 0; i < 2; i++) {
        rounds(comm[i], 50);
        MPI_Comm_free(&comm[i]);
        CHECK(!MPI_Session_finalize(&session[i]));
    }
    if (rank == 0)
        printf("good\n");
#else
    puts("skip");
#endif
}

/* Libraries do their last collectives while MPI_Finalize deletes what hangs on MPI_COMM_SELF. */
static int last_collectives(MPI_Comm self, int key, void *value, void *extra)
{
    MPI_Datatype every_other;
    int data[8] = {0};

    (void)self, (void)key, (void)value, (void)extra;
    MPI_Type_vector(4, 1, 2, MPI_INT, &every_other);
    MPI_Type_commit(&every_other);
    if (rank == 0)
        data[6] = 6;
    for (int i = 0; i < 6; i++)
        MPI_Bcast(data, 1, every_other, 0, MPI_COMM_WORLD);
    CHECK(data[6] == 6);
    rounds(MPI_COMM_WORLD, 10);
    MPI_Type_free(&every_other);
    return MPI_SUCCESS;
}

static void in_finalize(void)
{
    int key;

    start();
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, last_collectives, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
    rounds(MPI_COMM_WORLD, 10);
    finish();
}

/* And in MPI_Comm_free, on the communicator that is freed. */
static int last_call(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)key, (void)value, (void)extra;
    one_round(comm, 3);
    return MPI_SUCCESS;
}

static void in_comm_free(void)
{
    MPI_Comm world = MPI_COMM_WORLD;
    int key;

    start();
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, last_call, &key, NULL);
    for (int i = 0; i < 12; i++) {
        /* Handles are used again for communicators of other ranks. */
        MPI_Comm comm;
        MPI_Comm_split(MPI_COMM_WORLD, i % 3 ? rank % 2 : 0, i % 2 ? rank : -rank, &comm);
        if (rank == 0)
            MPI_Comm_set_attr(comm, key, NULL);
        rounds(comm, i % 4 == 3 ? 10 : 1);
        if (rank != 0)
            MPI_Comm_set_attr(comm, key, NULL);
        CHECK((i % 5 ? MPI_Comm_free : MPI_Comm_disconnect)(&comm) == MPI_SUCCESS);
        CHECK(comm == MPI_COMM_NULL);
    }
    MPI_Comm_free_keyval(&key);
    rounds(MPI_COMM_WORLD, 10);
    /* One rank's mistake does not change where calls go. */
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (rank == 0)
        CHECK(MPI_Comm_free(&world) != MPI_SUCCESS);
    rounds(MPI_COMM_WORLD, 10);
    finish();
}

/* A session goes on when MPI_COMM_WORLD has gone. */
static void session_outlives(void)
{
#ifdef HAS_SESSIONS
    MPI_Session session;
    MPI_Comm comm;
    MPI_Datatype every_other;
    int data[8] = {0};

    start();
    CHECK(!MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session));
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
    MPI_Comm_free(&comm);
    CHECK(!MPI_Session_finalize(&session));
    if (rank == 0)
        printf("good\n");
#else
    puts("skip");
#endif
}

/* A session's communicator that is not used before that. */
static void session_used_late(void)
{
#ifdef HAS_SESSIONS
    MPI_Session session;
    MPI_Comm comm;

    start();
    CHECK(!MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session));
    comm = comm_of(session, "collx");
    MPI_Finalize();
    rounds(comm, 10);
    MPI_Comm_free(&comm);
    CHECK(!MPI_Session_finalize(&session));
    if (rank == 0)
        printf("good\n");
#else
    puts("skip");
#endif
}

#ifdef HAS_SESSIONS
static void *rounds_of_another_thread(void *comm)
{
    if (rank == 0) /* MPI_Init is over here, and not yet where the others begin */
        usleep(1000000);
    rounds(*(MPI_Comm *)comm, 10);
    return NULL;
}
#endif

/* And one that is, on some ranks before MPI_COMM_WORLD comes up and on another after that. */
static void session_used_meanwhile(void)
{
#ifdef HAS_SESSIONS
    MPI_Session session = session_with_threads();
    MPI_Comm comm = comm_of(session, "collx");
    pthread_t other;
    int provided;

    MPI_Comm_rank(comm, &rank);
    CHECK(!pthread_create(&other, NULL, rounds_of_another_thread, &comm));
    usleep(500000);
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
    CHECK(!pthread_join(other, NULL));
    finish();
    MPI_Comm_free(&comm);
    CHECK(!MPI_Session_finalize(&session));
#else
    puts("skip");
#endif
}

#ifdef HAS_SESSIONS
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

    slow_session = session_with_threads();
    comm = comm_of(slow_session, "slow");
    MPI_Comm_rank(comm, &rank);
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
#endif

static void session_meanwhile(void)
{
#ifdef HAS_SESSIONS
    MPI_Session session;
    MPI_Comm comm;

    begin_to_end();
    session = session_with_threads();
    comm = comm_of(session, "meanwhile");
    rounds(comm, 50);
    let_it_end();
    rounds(comm, 50);
    MPI_Comm_free(&comm);
    sem_post(&slow_may_end); /* the other one */
    CHECK(!MPI_Session_finalize(&session));
    if (rank == 0)
        printf("good\n");
#else
    puts("skip");
#endif
}

static void init_meanwhile(void)
{
#ifdef HAS_SESSIONS
    begin_to_end();
    start_with_threads();
    rounds(MPI_COMM_WORLD, 50);
    let_it_end();
    rounds(MPI_COMM_WORLD, 50);
    finish();
#else
    puts("skip");
#endif
}

static void finalize_meanwhile(void)
{
#ifdef HAS_SESSIONS
    start_with_threads();
    rounds(MPI_COMM_WORLD, 50);
    begin_to_end();
    MPI_Finalize();
    let_it_end();
    if (rank == 0)
        printf("good\n");
#else
    puts("skip");
#endif
}

const struct weather weather_ends[] = {
    {"aborts", aborts},
    {"before-init", before_init},
    {"after-finalize", after_finalize},
    {"after-finalize-kept", after_finalize_kept},
    {"no-finalize", no_finalize},
    {"no-finalize-late", no_finalize_late},
    {"sessions", sessions},
    {"constructor-session", constructor_session},
    {"two-sessions", two_sessions},
    {"begins-again", begins_again},
    {"in-finalize", in_finalize},
    {"in-comm-free", in_comm_free},
    {"session-outlives", session_outlives},
    {"session-used-late", session_used_late},
    {"session-used-meanwhile", session_used_meanwhile},
    {"session-meanwhile", session_meanwhile},
    {"init-meanwhile", init_meanwhile},
    {"finalize-meanwhile", finalize_meanwhile},
    {0},
};
