/* Many communicators that share memory: one program for each thing that tests/run_memory.py tries.
 *
 * usage: memory CASE [NUMBER]; the cases are at the end.
 */
#include "tests/programs/cases.h"
#include "tests/programs/check.h"
#include "tests/programs/open_files.h"
#include "tests/programs/set_up.h"

#include <mpi.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int rank, size;

static double now(void)
{
    struct timespec time;

    CHECK(!clock_gettime(CLOCK_MONOTONIC, &time));
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Nobody leaves before the last one has come, who comes late. */
static void check_barrier(MPI_Comm comm, int late)
{
    enum { RANKS = 64 };
    double came, gone, all[RANKS];
    int me, ranks;

    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &ranks);
    CHECK(ranks <= RANKS);
    if (me == late)
        usleep(300);
    came = now();
    CHECK(MPI_Barrier(comm) == MPI_SUCCESS);
    gone = now();
    CHECK(MPI_Allgather(&came, 1, MPI_DOUBLE, all, 1, MPI_DOUBLE, comm) == MPI_SUCCESS);
    for (int i = 0; i < ranks; i++)
        CHECK(all[i] <= gone);
}

/* Rounds of what collx routes, checked, on a communicator that is set up.  The first of each comes
 * late, and no two uses have the same data: what a freed communicator has left would not do. */
static void use(MPI_Comm comm)
{
    enum { LONG = 5000, ROUNDS = 8 };
    static _Thread_local int data[LONG], sum[LONG], uses;
    int me, ranks;

    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &ranks);
    use_until_set_up(comm);
    const int first = uses++ * ROUNDS, late = uses % ranks;
    check_barrier(comm, late);
    for (int i = first; i < first + ROUNDS; i++) {
        int count = i % 2 ? LONG : 1, root = i % ranks;
        for (int k = 0; k < count; k++)
            data[k] = me == root ? k + i : -1;
        if (i == first && me == root)
            usleep(300);
        CHECK(MPI_Bcast(data, count, MPI_INT, root, comm) == MPI_SUCCESS);
        for (int k = 0; k < count; k++)
            CHECK(data[k] == k + i);
        for (int k = 0; k < count; k++)
            data[k] = me + k + i;
        if (i == first && me == late)
            usleep(300);
        CHECK(MPI_Allreduce(data, sum, count, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS);
        for (int k = 0; k < count; k++)
            CHECK(sum[k] == ranks * (ranks - 1) / 2 + ranks * (k + i));
        CHECK(MPI_Barrier(comm) == MPI_SUCCESS);
    }
}

static MPI_Comm named(const char *name, int number)
{
    char text[64];
    MPI_Comm comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    snprintf(text, sizeof text, "%s%d", name, number);
    MPI_Comm_set_name(comm, text);
    return comm;
}

/* As many communicators as are asked for, at the same time; then one more after one was freed, and
 * as many again after all were. */
static void fill(int count)
{
    MPI_Comm *comm = calloc((size_t)count, sizeof *comm), more;

    CHECK(comm);
    for (int i = 0; i < count; i++)
        use(comm[i] = named("first-", i));
    for (int i = 0; i < count; i++)
        use(comm[i]);
    MPI_Comm_free(&comm[0]);
    use(more = named("refill-", 0));
    use(comm[0] = named("refill-", 1));
    MPI_Comm_free(&more);
    for (int i = 0; i < count; i++)
        MPI_Comm_free(&comm[i]);
    for (int i = 0; i < count; i++)
        use(comm[i] = named("second-", i));
    for (int i = 0; i < count; i++)
        MPI_Comm_free(&comm[i]);
    free(comm);
}

/* Each of them alone. */
static void cycle(int count)
{
    for (int i = 0; i < count; i++) {
        MPI_Comm comm = named("cycle", 0);
        use(comm);
        MPI_Comm_free(&comm);
    }
}

/* Groups of other ranks each: pairs, all, and one rank alone. */
static void groups(int count)
{
    for (int i = 0; i < count; i++) {
        MPI_Comm pair;
        MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &pair);
        MPI_Comm_set_name(pair, "group");
        use(pair);
        MPI_Comm all = named("all", 0);
        use(all);
        MPI_Comm_free(&all);
        MPI_Comm_free(&pair);
    }
}

/* The files of the segments that this process has mapped, each once. */
static int segments(unsigned long *file, int most)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512];
    int count = 0;

    CHECK(maps);
    while (count < most && fgets(line, sizeof line, maps))
        count += strstr(line, "/memfd:collx") &&
                 sscanf(line, "%*s %*s %*s %*s %lu", &file[count]) == 1 &&
                 (!count || file[count - 1] != file[count]);
    fclose(maps);
    return count;
}

enum { SEGMENTS_MOST = 16 };

/* One communicator after the other, of the ranks in this order and in the opposite one by turns;
 * or in this one.  How many segments are left when all of them are freed. */
static int one_by_one(int count, bool turned)
{
    unsigned long first[SEGMENTS_MOST], now[SEGMENTS_MOST];
    MPI_Comm comm;

    for (int i = 0; i < count; i++) {
        MPI_Comm_split(MPI_COMM_WORLD, 0, turned && i % 2 ? -rank : rank, &comm);
        MPI_Comm_set_name(comm, "again0");
        use(comm);
        CHECK(segments(i ? now : first, SEGMENTS_MOST) >= 1);
        MPI_Comm_free(&comm);
    }
    const int left = segments(now, SEGMENTS_MOST);
    CHECK(left > 1 || now[0] == first[0]);
    return left;
}

/* One after the other has the same segment, and with the ranks in another order another one; of
 * several at a time some are kept; and those of which each has a name of its own have what others
 * leave. */
static void again(int count)
{
    enum { KEPT = 4 };
    unsigned long now[SEGMENTS_MOST];
    MPI_Comm comm[KEPT + 2];

    CHECK(one_by_one(count, false) == 1);
    CHECK(one_by_one(count, true) == 2);
    for (int turn = 0; turn < 3; turn++) {
        for (int i = 0; i < KEPT + 2; i++)
            use(comm[i] = named("again", 0));
        /* That of the other order is there yet, the first time. */
        CHECK(segments(now, SEGMENTS_MOST) == KEPT + 2 + (turn == 0));
        for (int i = 0; i < KEPT + 2; i++)
            MPI_Comm_free(&comm[i]);
        CHECK(segments(now, SEGMENTS_MOST) == KEPT);
    }
    for (int i = 0; i < count; i++) {
        use(comm[0] = named("other", i));
        CHECK(segments(now, SEGMENTS_MOST) == KEPT);
        MPI_Comm_free(&comm[0]);
    }
}

/* On several NUMA nodes each rank's memory is on its own: the other order needs another segment. */
static void again_on_nodes(int count)
{
    CHECK(one_by_one(count, false) == 1);
    CHECK(one_by_one(count, true) == 2);
}

/* How much memory the kernel has for the segments of all ranks, in bytes; at rank 0.  0: not
 * everybody may look. */
static unsigned long memory_taken(void)
{
    enum { MOST = 64 };
    struct segment {
        unsigned long file, bytes;
    } own[MOST] = {0}, all[8 * MOST];
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512], path[64] = "/proc/self/map_files/";
    unsigned long sum = 0;
    struct stat status;

    CHECK(maps && size <= 8);
    for (int count = 0; fgets(line, sizeof line, maps);) {
        if (!strstr(line, "/memfd:collx"))
            continue;
        CHECK(count < MOST && sscanf(line, "%30s", path + strlen("/proc/self/map_files/")) == 1);
        if (stat(path, &status))
            break;
        const bool known =
            count && own[count - 1].file == status.st_ino; /* on several NUMA nodes */
        if (!known)
            own[count++] = (struct segment){status.st_ino, (unsigned long)status.st_blocks * 512};
    }
    fclose(maps);
    MPI_Gather(own, 2 * MOST, MPI_UNSIGNED_LONG, all, 2 * MOST, MPI_UNSIGNED_LONG, 0,
               MPI_COMM_WORLD);
    for (int i = 0; rank == 0 && i < size * MOST; i++) {
        bool known = false;
        for (int k = 0; k < i; k++)
            known = known || all[k].file == all[i].file;
        sum += known ? 0 : all[i].bytes;
    }
    return sum;
}

/* Groups of fewer and fewer ranks, of which each has so many at a time: those who are not in the
 * next one have to let go of nothing, and the others have. */
static void fewer(int count)
{
    MPI_Comm group, comm[8];

    CHECK(count <= 8);
    for (int first = 0; first < size - 1; first++) {
        MPI_Comm_split(MPI_COMM_WORLD, rank < first ? MPI_UNDEFINED : 0, rank, &group);
        for (int i = 0; i < count && rank >= first; i++) {
            MPI_Comm_dup(group, &comm[i]);
            MPI_Comm_set_name(comm[i], "fewer");
            use(comm[i]);
        }
        for (int i = 0; i < count && rank >= first; i++)
            MPI_Comm_free(&comm[i]);
        if (rank >= first)
            MPI_Comm_free(&group);
        MPI_Barrier(MPI_COMM_WORLD);
        const unsigned long taken = memory_taken();
        CHECK(taken <= strtoul(getenv("COLLX_MEMORY"), NULL, 10));
        if (rank == 0 && !taken)
            printf("skip\n");
    }
}

static MPI_Comm meanwhile[8];
static int meanwhile_count;

/* meanwhile.c calls this in the midst of a setup. */
void ibcast_begins(void);
void ibcast_begins(void)
{
    if (rank == 0 || !meanwhile_count)
        return;
    usleep(200000); /* by then rank 0 has chosen the segment */
    while (meanwhile_count)
        MPI_Comm_free(&meanwhile[--meanwhile_count]);
}

/* What rank 0 has chosen of the segments that all have kept, other ranks have no room for any more,
 * as others have come since they told of it. */
static void let_go(int count)
{
    CHECK(count <= 8);
    MPI_Comm first = named("first", 0), next;
    use(first);
    for (int i = 0; i < count; i++)
        use(meanwhile[i] = named("meanwhile", i));
    MPI_Comm_free(&first);
    meanwhile_count = count;
    use(next = named("next", 0));
    CHECK((meanwhile_count == 0) == (rank != 0));
    while (meanwhile_count)
        MPI_Comm_free(&meanwhile[--meanwhile_count]);
    MPI_Comm_free(&next);
}

/* Each of them alone, by turns of two kinds, which the policy may treat differently. */
static void by_turns(int count)
{
    for (int i = 0; i < count; i++) {
        MPI_Comm comm = named("turn", i % 2);
        use(comm);
        MPI_Comm_free(&comm);
    }
}

static void barriers(MPI_Comm comm, int count)
{
    for (int i = 0; i < count; i++)
        CHECK(MPI_Barrier(comm) == MPI_SUCCESS);
    MPI_Comm_free(&comm);
}

/* Communicators that are used enough to be set up, by many calls or by a long one among few, and
 * such as are not: by few calls, even where those take long. */
static void brief(int count)
{
    int room[8] = {rank == 0 ? 7 : 0};
    MPI_Datatype every_other;
    MPI_Comm comm;

    /* Before anything is set up: a call that takes some asking to be understood. */
    MPI_Type_vector(4, 1, 2, MPI_INT, &every_other);
    MPI_Type_commit(&every_other);
    comm = named("typed", 0);
    CHECK(MPI_Bcast(room, 1, every_other, 0, comm) == MPI_SUCCESS && room[0] == 7);
    MPI_Comm_free(&comm);
    MPI_Type_free(&every_other);

    for (int i = 0; i < count; i++)
        barriers(named("brief", 0), 15);
    barriers(named("often", 0), 4096 + 100);
    comm = named("long", 0);
    use_until_set_up(comm);
    barriers(comm, 100);
    comm = named("later", 0);
    for (int i = 0; i < 16; i++)
        CHECK(MPI_Barrier(comm) == MPI_SUCCESS);
    use_until_set_up(comm);
    barriers(comm, 64 - 16 - 16 + 100);
    comm = named("slow", 0);
    CHECK(MPI_Barrier(comm) == MPI_SUCCESS);
    if (rank == size - 1)
        usleep(100000);
    barriers(comm, 15 + 100);
}

/* How often rank 0 speaks for communicators, of few calls or of long ones among them: only where
 * one rank may know more of it than another, or one that is freed may have left something. */
static void asks(int count)
{
    enum { CALLS = 300, MANY = 64 };
    const int *asked = dlsym(RTLD_DEFAULT, "asked");
    int data[MANY] = {0}, sum[MANY];

    CHECK(asked);
    for (int what = 0; what < 4; what++) {
        MPI_Comm comm = named("asks", what);
        const int before = *asked;
        for (int i = 1; i < CALLS; i++)
            CHECK((what == 0   ? MPI_Barrier(comm)
                   : what == 1 ? MPI_Allreduce(data, sum, MANY - 1, MPI_INT, MPI_SUM, comm)
                   : what == 2 ? MPI_Allreduce(data, sum, MANY, MPI_INT, MPI_SUM, comm)
                               : MPI_Bcast(data, 1, MPI_INT, 0, comm)) == MPI_SUCCESS);
        CHECK(*asked - before == (what < 2 ? count - 1 : count));
        MPI_Comm_free(&comm);
    }
}

static void *thread(void *comms)
{
    MPI_Comm *comm = comms;

    use(*comm);
    return NULL;
}

/* Communicators that are set up by as many threads at the same time, again and again. */
static void threads(int count)
{
    enum { THREADS = 4 };
    pthread_t id[THREADS];
    MPI_Comm comm[THREADS];

    for (int i = 0; i < count; i++) {
        for (int t = 0; t < THREADS; t++)
            comm[t] = named("thread", 0);
        for (int t = 0; t < THREADS; t++)
            CHECK(!pthread_create(&id[t], NULL, thread, &comm[t]));
        for (int t = 0; t < THREADS; t++)
            CHECK(!pthread_join(id[t], NULL));
        for (int t = 0; t < THREADS; t++)
            MPI_Comm_free(&comm[t]);
    }
    fill(2);
}

/* MPI itself lacks memory on one rank, for one of the things after the other that collx has it do:
 * while a communicator comes to be known and is set up, or until it is freed, when its handle
 * becomes the next one's. */
static void mpi_lacks(int poor)
{
    int *lacks = dlsym(RTLD_DEFAULT, "mpi_lacks");

    CHECK(lacks);
    *lacks = rank == poor;
    use(MPI_COMM_WORLD); /* which the program does not free */
    for (int what = 0; what < 8; what++) {
        MPI_Comm comm = named("lacks", what);
        *lacks = rank == poor ? 1 << what / 2 : 0;
        use(comm);
        if (what % 2)
            *lacks = 0;
        use(comm);
        MPI_Comm_free(&comm);
        *lacks = 0;
        use(comm = named("after", what));
        MPI_Comm_free(&comm);
    }
}

/* MPI has no memory for the Bcast by which ranks hear where their segment is. */
static void untold(int count)
{
    int *lacks = dlsym(RTLD_DEFAULT, "mpi_lacks");
    MPI_Comm told = named("told", 0);

    CHECK(lacks);
    use(told);
    const long before = open_files();
    for (int i = 0; i < count; i++) {
        MPI_Comm comm = named("untold", 0);
        *lacks = 16;
        for (int calls = 0; calls < 4; calls++)
            check_barrier(comm, calls % size);
        *lacks = 0;
        MPI_Comm_free(&comm);
    }
    CHECK(open_files() == before);
    MPI_Comm_free(&told);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(int count);
    } cases[] = {{"fill", fill},
                 {"cycle", cycle},
                 {"groups", groups},
                 {"again", again},
                 {"again-on-nodes", again_on_nodes},
                 {"fewer", fewer},
                 {"let-go", let_go},
                 {"by-turns", by_turns},
                 {"threads", threads},
                 {"brief", brief},
                 {"asks", asks},
                 {"mpi-lacks", mpi_lacks},
                 {"untold", untold}};
    int provided;

    if (argc != 3)
        return 2;
    MPI_Init_thread(NULL, NULL, strcmp(argv[1], "threads") ? 0 : MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (!strcmp(argv[1], "threads") && provided < MPI_THREAD_MULTIPLE) {
        if (rank == 0)
            printf("skip\n");
    } else {
        RUN_CASE(cases, argv[1], atoi(argv[2]));
        if (rank == 0)
            printf("good\n");
    }
    MPI_Finalize();
    return 0;
}
