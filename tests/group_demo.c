/* Collectives without MPI: forked processes that have nothing but some memory in common, by which
 * they meet once, and sockets.
 *
 * usage: group_demo RANKS NODE_SIZE [MAX_BYTES]
 *
 * Every NODE_SIZE ranks are a node of their own, in the order of the ranks if it is positive, dealt
 * out to that many nodes if it is negative; 0: all are on one.  With GROUP_DEMO_SOCKETS=0 there
 * are no sockets; with GROUP_DEMO_LAST=n the last rank is late for the last of n more Bcasts; with
 * GROUP_DEMO_NEXT=policy there is a second group, of that policy, for whose barrier the last rank
 * is late; with GROUP_DEMO_SPACE=bytes no more address space than that is left while the group is
 * made (a sanitizer needs its own: exit code 77), on the rank GROUP_DEMO_ALONE if that is set;
 * with GROUP_DEMO_MANY=n there are n long Bcasts; with GROUP_DEMO_WITHOUT=rank this one has no
 * libsisci.so; GROUP_DEMO_FOLDER is one to go to first.  All results are checked, and how
 * collectives went is printed, with GROUP_DEMO_WAYS for each size and operation that it names. */
#include "group/group.h" /* where it is installed: <collx/group.h> */

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS_MAX = 32, ROUNDS = 50 };

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "rank %d, line %d: %s\n", me.rank, __LINE__, #condition);              \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

/* The memory that they have in common. */
struct board {
    atomic_int arrived, round, entered[RANKS_MAX];
    char told[2][RANKS_MAX][COLLX_GROUP_GATHER_MAX];
};

static struct me {
    int rank, size;
    int gathers, transfers;
    int socket[RANKS_MAX]; /* to each other rank */
    size_t done[2 * RANKS_MAX];
    struct board *board;
} me;

/* Two rows in turn are enough: who tells the next but one has been told by all in between. */
static int gather(void *context, const void *own, void *all, size_t bytes)
{
    struct me *self = context;
    struct board *board = self->board;
    char(*told)[COLLX_GROUP_GATHER_MAX] = board->told[self->gathers++ & 1];

    memcpy(told[self->rank], own, bytes);
    if (atomic_fetch_add(&board->arrived, 1) + 1 == self->size) {
        atomic_store(&board->arrived, 0);
        atomic_fetch_add(&board->round, 1);
    }
    while (atomic_load(&board->round) < self->gathers)
        sched_yield();
    for (int rank = 0; rank < self->size; rank++)
        memcpy((char *)all + (size_t)rank * bytes, told[rank], bytes);
    return 0;
}

/* A message of no bytes is one, too: a single byte here. */
static size_t length_of(const struct collx_group_message *message)
{
    return message->bytes ? message->bytes : 1;
}

static int move(int socket, const struct collx_group_message *message, size_t *done)
{
    char nothing = 0, *at = message->bytes ? (char *)message->data + *done : &nothing;
    const size_t rest = length_of(message) - *done;
    ssize_t moved = message->sends ? send(socket, at, rest, MSG_NOSIGNAL | MSG_DONTWAIT)
                                   : recv(socket, at, rest, MSG_DONTWAIT);

    if (moved > 0)
        *done += (size_t)moved;
    return moved > 0 || (moved < 0 && errno == EAGAIN) ? 0 : -ECONNRESET;
}

static int transfer(void *context, const struct collx_group_message *messages, int count)
{
    struct me *self = context;
    struct pollfd fds[2 * RANKS_MAX];
    int open = count;

    self->transfers++;
    for (int i = 0; i < 2 * RANKS_MAX; i++) {
        self->done[i] = 0;
        fds[i] = (struct pollfd){.fd = -1};
    }
    while (open) {
        open = 0;
        for (int i = 0; i < count; i++) {
            const bool through = self->done[i] == length_of(&messages[i]);
            fds[i].fd = through ? -1 : self->socket[messages[i].rank];
            fds[i].events = messages[i].sends ? POLLOUT : POLLIN;
            open += !through;
        }
        if (open && poll(fds, 2 * RANKS_MAX, -1) < 0 && errno != EINTR)
            return -errno;
        for (int i = 0; i < count; i++)
            if (fds[i].fd >= 0 && fds[i].revents && move(fds[i].fd, &messages[i], &self->done[i]))
                return -ECONNRESET;
    }
    errno = EPROTO; /* which no caller of a collective has to see */
    return 0;
}

/* What nothing can do is said to be so, by all. */
static int expected(const struct collx_group *group, const char *collective)
{
    char text[1024];

    return *collx_group_describe(group, collective, text, sizeof text) ? 0 : -ENOTSUP;
}

static void try_barrier(struct collx_group *group)
{
    if (expected(group, "barrier")) {
        CHECK(collx_group_barrier(group) == -ENOTSUP);
        return;
    }
    for (int round = 1; round <= ROUNDS; round++) {
        atomic_store(&me.board->entered[me.rank], round);
        CHECK(!collx_group_barrier(group));
        for (int rank = 0; rank < me.size; rank++)
            CHECK(atomic_load(&me.board->entered[rank]) >= round);
    }
}

static unsigned char byte_of(size_t i, int root)
{
    return (unsigned char)(i * 7 + i / 251 + (size_t)root * 31);
}

static void try_bcast(struct collx_group *group, size_t bytes)
{
    unsigned char *data = malloc(bytes + 1);
    const int able = expected(group, "bcast");

    for (int root = 0; root < me.size; root++) {
        for (size_t i = 0; i <= bytes; i++)
            data[i] = me.rank == root ? byte_of(i, root) : 0xee;
        errno = ERANGE;
        CHECK(collx_group_bcast(group, data, bytes, root) == able && errno == ERANGE);
        for (size_t i = 0; i < bytes && !able; i++)
            CHECK(data[i] == byte_of(i, root));
        CHECK(data[bytes] == (me.rank == root ? byte_of(bytes, root) : 0xee));
    }
    free(data);
}

/* x -> ax + b, which does not commute: doing one after the other. */
struct affine {
    uint64_t a, b;
};

static void compose(void *context, const void *in, void *inout, size_t count)
{
    const struct affine *first = in;
    struct affine *second = inout;

    CHECK(context == &me);
    for (size_t i = 0; i < count; i++)
        second[i] =
            (struct affine){second[i].a * first[i].a, second[i].a * first[i].b + second[i].b};
}

static struct affine affine_of(size_t i, int rank)
{
    return (struct affine){2 * i + 3 + (uint64_t)rank, 5 * i + (uint64_t)rank};
}

static void try_allreduce(struct collx_group *group, size_t bytes)
{
    const size_t count = bytes / sizeof(double), pairs = bytes / sizeof(struct affine);
    const int able = expected(group, "allreduce");
    double *in = malloc(bytes + 1), *out = malloc(bytes + 1);
    struct affine *own = malloc(bytes + 1), whole[1];

    for (int in_place = 0; in_place < 2; in_place++) {
        for (size_t i = 0; i < count; i++)
            in[i] = out[i] = 1.0 / (double)(i + 3 + (size_t)me.rank);
        CHECK(collx_group_allreduce(group, in_place ? out : in, out, count, COLLX_GROUP_F64,
                                    COLLX_GROUP_SUM) == able);
        for (size_t i = 0; i < count && !able; i++) {
            double sum = 1.0 / (double)(i + 3);
            for (int rank = 1; rank < me.size; rank++)
                sum += 1.0 / (double)(i + 3 + (size_t)rank);
            CHECK(out[i] == sum);
        }
        for (size_t i = 0; i < pairs; i++)
            own[i] = affine_of(i, me.rank);
        struct affine *result = in_place ? own : (struct affine *)out;
        CHECK(collx_group_allreduce_by(group, own, result, pairs, sizeof *own, compose, &me) ==
              able);
        for (size_t i = 0; i < pairs && !able; i++) {
            *whole = affine_of(i, 0);
            for (int rank = 1; rank < me.size; rank++) {
                struct affine next = affine_of(i, rank);
                compose(&me, whole, &next, 1);
                *whole = next;
            }
            CHECK(result[i].a == whole->a && result[i].b == whole->b);
        }
    }
    free(in);
    free(out);
    free(own);
}

/* Memory that is shared needs no descriptor any more: a child that is forked would keep it. */
static void look_at_descriptors(void)
{
    for (int fd = 0; fd < 256; fd++) {
        char path[32], to[64] = "";
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        CHECK(readlink(path, to, sizeof to - 1) < 0 || strncmp(to, "/memfd:collx", 12) != 0);
    }
}

static void try_arguments(struct collx_group *group)
{
    double x = 0;

    CHECK(collx_group_bcast(group, &x, 1, me.size) == -EINVAL);
    CHECK(collx_group_allreduce(group, &x, &x, 1, COLLX_GROUP_F64, COLLX_GROUP_BOR) == -EINVAL);
    CHECK(collx_group_allreduce(group, &x, &x, SIZE_MAX, COLLX_GROUP_F64, COLLX_GROUP_SUM) ==
          -EINVAL);
    CHECK(collx_group_allreduce_by(group, &x, &x, 1, sizeof x, NULL, NULL) == -EINVAL);
    CHECK(collx_group_bcast(group, &x, SIZE_MAX, 0) == -EINVAL);
    CHECK(collx_group_allreduce_by(group, &x, &x, 1, COLLX_GROUP_ELEMENT_MOST + 1, compose, &me) ==
          -EINVAL);
}

/* A child has no part in the group, whatever it does when it ends: its own memory, which may lie
 * where its parent has that of the group, stays, and so does the group. */
static void try_child(struct collx_group *group)
{
    enum { PIECE = 65536, PIECES = 256 };
    int status;

    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        char *piece[PIECES];
        for (int i = 0; i < PIECES; i++) {
            piece[i] =
                mmap(NULL, PIECE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            memset(piece[i], i, PIECE);
        }
        collx_group_destroy(group);
        for (int i = 0; i < PIECES; i++)
            CHECK(piece[i][0] == (char)i && !memcmp(piece[i], piece[i] + 1, PIECE - 1));
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

/* "sum 1024 max 512 ...": by what each goes. */
static void try_ways(struct collx_group *group, const char *ways)
{
    double in[1 << 10] = {0}, out[1 << 10];
    unsigned bytes;
    char op[8];

    for (int used; sscanf(ways, "%7s %u%n", op, &bytes, &used) == 2; ways += used) {
        const int before = me.transfers;
        CHECK(bytes <= sizeof in);
        CHECK(!collx_group_allreduce(group, in, out, bytes / sizeof *in, COLLX_GROUP_F64,
                                     *op == 's' ? COLLX_GROUP_SUM : COLLX_GROUP_MAX));
        if (me.rank == 0)
            printf("%s %u: %s\n", op, bytes, me.transfers > before ? "messages" : "memory");
    }
}

/* Long ones, as many as it takes to find out by which way they go fastest. */
static void try_many(struct collx_group *group, int count)
{
    enum { LONG = 1 << 20 };
    char *data = calloc(1, LONG);

    CHECK(data);
    while (count--)
        CHECK(!collx_group_bcast(group, data, LONG, 0));
    free(data);
}

/* The last ones: rank 0 has ended when the last rank comes, which gets all the same what has been
 * sent to it. */
static void try_last(struct collx_group *group, int count)
{
    unsigned char data[100];

    while (count--) {
        if (count == 0 && me.rank == me.size - 1)
            usleep(400000);
        for (size_t i = 0; i < sizeof data; i++)
            data[i] = me.rank ? 0xee : byte_of(i, count);
        CHECK(!collx_group_bcast(group, data, sizeof data, 0));
        for (size_t i = 0; i < sizeof data; i++)
            CHECK(data[i] == byte_of(i, count));
    }
}

/* Leave no more address space than that; 0: all that there was. */
static void leave_space(size_t bytes)
{
    struct rlimit limit;
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");

    CHECK(file && fscanf(file, "%lu", &pages) == 1 && !getrlimit(RLIMIT_AS, &limit));
    fclose(file);
    limit.rlim_cur = bytes ? pages * (unsigned long)sysconf(_SC_PAGESIZE) + bytes : limit.rlim_max;
    CHECK(!setrlimit(RLIMIT_AS, &limit));
}

/* As the environment has it. */
static int create(struct collx_group **group, const struct collx_group_config *config, char *why,
                  size_t size)
{
    const char *space = getenv("GROUP_DEMO_SPACE"), *alone = getenv("GROUP_DEMO_ALONE");
    const bool little = space && (!alone || atoi(alone) == me.rank);

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    if (space)
        exit(77);
#endif
    if (little)
        leave_space((size_t)atol(space));
    errno = ERANGE;
    int error = collx_group_create(group, config, why, size);
    CHECK(errno == ERANGE);
    if (little)
        leave_space(0);
    return error;
}

/* A group beside the first, which is as good as before when it has gone. */
static void try_next(struct collx_group *group, struct collx_group_config config)
{
    struct collx_group *next;

    config.policy = getenv("GROUP_DEMO_NEXT");
    CHECK(!collx_group_create(&next, &config, NULL, 0));
    if (me.rank == me.size - 1)
        usleep(1000000);
    CHECK(!collx_group_barrier(next));
    collx_group_destroy(next);
    try_barrier(group);
}

static int run(int node_size, size_t max_bytes)
{
    const char *sockets = getenv("GROUP_DEMO_SOCKETS"), *without = getenv("GROUP_DEMO_WITHOUT");
    struct collx_group_config config = {
        .rank = me.rank,
        .size = me.size,
        .context = &me,
        .gather = gather,
        .transfer = sockets && *sockets == '0' ? NULL : transfer,
        .node = node_size > 0   ? (uint64_t)(1 + me.rank / node_size)
                : node_size < 0 ? (uint64_t)(1 + me.rank % -node_size)
                                : 0,
        .name = me.rank == 0 ? "demo" : NULL, /* that of rank 0 counts */
    };
    static const char *const names[] = {"barrier", "bcast", "allreduce"};
    struct collx_group *group;
    char why[COLLX_GROUP_WHY] = "", text[1024];

    if (without && atoi(without) == me.rank)
        setenv("COLLX_SISCI_LIBRARY", "/nowhere/libsisci.so", 1);
    if (create(&group, &config, why, sizeof why)) {
        if (me.rank == 0)
            fprintf(stderr, "no group: %s\n", why);
        return 1;
    }
    for (int i = 0; i < 3 && me.rank == 0; i++)
        printf("%s: %s\n", names[i], collx_group_describe(group, names[i], text, sizeof text));
    fflush(stdout);
    look_at_descriptors();
    try_barrier(group);
    try_child(group);
    for (size_t bytes = 0; bytes <= max_bytes; bytes = bytes ? 3 * bytes : 1) {
        try_bcast(group, bytes);
        try_allreduce(group, bytes & ~(size_t)15);
    }
    try_arguments(group);
    if (getenv("GROUP_DEMO_WAYS"))
        try_ways(group, getenv("GROUP_DEMO_WAYS"));
    if (getenv("GROUP_DEMO_MANY"))
        try_many(group, atoi(getenv("GROUP_DEMO_MANY")));
    if (getenv("GROUP_DEMO_LAST"))
        try_last(group, atoi(getenv("GROUP_DEMO_LAST")));
    if (getenv("GROUP_DEMO_NEXT"))
        try_next(group, config);
    collx_group_destroy(group);
    if (me.rank == 0)
        puts("good");
    return 0;
}

static void open_sockets(int rows[][RANKS_MAX], int size)
{
    for (int a = 0; a < size; a++)
        for (int b = 0; b < a; b++) {
            int ends[2];
            CHECK(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
            rows[a][b] = ends[0];
            rows[b][a] = ends[1];
        }
}

int main(int argc, char **argv)
{
    static int rows[RANKS_MAX][RANKS_MAX];
    int failed = 0;

    me.size = argc > 2 ? atoi(argv[1]) : 0;
    if (me.size < 1 || me.size > RANKS_MAX) {
        fprintf(stderr, "usage: group_demo RANKS NODE_SIZE [MAX_BYTES]\n");
        return 2;
    }
    if (getenv("GROUP_DEMO_FOLDER"))
        CHECK(!chdir(getenv("GROUP_DEMO_FOLDER")));
    me.board =
        mmap(NULL, sizeof *me.board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(me.board != MAP_FAILED);
    open_sockets(rows, me.size);
    for (me.rank = 0; me.rank < me.size; me.rank++)
        if (fork() == 0) {
            memcpy(me.socket, rows[me.rank], sizeof me.socket);
            alarm(60);
            exit(run(atoi(argv[2]), argc > 3 ? (size_t)atol(argv[3]) : 100000));
        }
    for (int status; wait(&status) > 0;)
        failed |= WIFEXITED(status) ? WEXITSTATUS(status) : 1;
    return failed;
}
