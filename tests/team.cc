#include "tests/team.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

Affine after(const Affine &first, const Affine &second)
{
    return {second.a * first.a, second.a * first.b + second.b};
}

namespace
{

/* The lender's datatype: elements as they are, or, where call->contiguous is false, in reverse
 * order of their bytes, so that a missing pack or unpack shows. */
void turn(const collx_call *call, const char *from, char *to, int64_t count)
{
    size_t size = call->elem_bytes;

    for (int64_t i = 0; i < count; i++)
        for (size_t b = 0; b < size; b++)
            to[i * size + b] = from[i * size + (call->contiguous ? b : size - 1 - b)];
}

int pack(void *, const collx_call *call, const void *buf, int64_t first, int64_t count,
         void *packed)
{
    turn(call, static_cast<const char *>(buf) + first * call->elem_bytes,
         static_cast<char *>(packed), count);
    return 0;
}

int unpack(void *, const collx_call *call, const void *packed, void *buf, int64_t first,
           int64_t count)
{
    turn(call, static_cast<const char *>(packed),
         static_cast<char *>(buf) + first * call->elem_bytes, count);
    return 0;
}

void *elements(void *, const collx_call *call, int64_t count, void **base)
{
    return *base = malloc(static_cast<size_t>(count) * call->elem_bytes + 1);
}

/* On unpacked elements, so what is in the buffers is what the caller of compose() has there. */
int reduce(void *, const collx_call *, const void *in, void *inout, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        Affine left = static_cast<const Affine *>(in)[i];
        Affine &right = static_cast<Affine *>(inout)[i];
        right = after(left, right);
    }
    return 0;
}

void progress(void *)
{
}

/* Between each two ranks a pair of sockets.  [rank][peer]: what `rank` talks to `peer` through. */
using Sockets = std::vector<std::vector<int>>;

Sockets open_sockets(int size)
{
    Sockets sockets(size, std::vector<int>(size, -1));

    for (int a = 0; a < size; a++)
        for (int b = 0; b < a; b++) {
            int ends[2];
            if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends))
                abort();
            sockets[a][b] = ends[0];
            sockets[b][a] = ends[1];
        }
    return sockets;
}

void close_sockets(const Sockets &sockets)
{
    for (const std::vector<int> &row : sockets)
        for (int socket : row)
            if (socket >= 0)
                close(socket);
}

/* ctx: a rank's row of the sockets. */
int exchange(void *ctx, int to, const void *sbuf, size_t sbytes, int from, void *rbuf,
             size_t rbytes)
{
    const std::vector<int> &socket = *static_cast<const std::vector<int> *>(ctx);
    const char *out = static_cast<const char *>(sbuf);
    char *in = static_cast<char *>(rbuf);

    while (sbytes || rbytes) {
        pollfd fds[2] = {{sbytes ? socket.at(to) : -1, POLLOUT, 0},
                         {rbytes ? socket.at(from) : -1, POLLIN, 0}};
        if (poll(fds, 2, -1) < 0)
            return 1;
        ssize_t sent = fds[0].revents ? send(socket[to], out, sbytes, MSG_NOSIGNAL) : 0;
        ssize_t got = fds[1].revents ? recv(socket[from], in, rbytes, 0) : 0;
        if ((sent < 0 && errno != EAGAIN) || (got < 0 && errno != EAGAIN) ||
            (fds[1].revents && got == 0))
            return 1;
        out += sent > 0 ? sent : 0;
        sbytes -= sent > 0 ? sent : 0;
        in += got > 0 ? got : 0;
        rbytes -= got > 0 ? got : 0;
    }
    return 0;
}

const collx_mpi_ops lent = {progress, reduce, pack, unpack, elements, exchange, 99};

std::string run_rank(const collx_algorithm *algorithm, const collx_args &args, int rank, int size,
                     bool crowded, void *memory, Sockets &sockets, const collx_place *places,
                     const std::function<std::string(Rank &)> &body)
{
    Rank self = {};

    self.team.rank = rank;
    self.team.size = size;
    self.team.places = places;
    self.team.ops = &lent;
    self.team.ctx = &sockets[rank];
    self.team.name = "a test";
    self.team.crowded = crowded;
    self.team.spins = crowded ? 0 : 200;
    self.team.pauses = 1;
    self.algorithm = algorithm;
    if (algorithm->attach(&self.team, &args, memory, &self.slot))
        return "attach failed";
    self.team.places = nullptr; /* they were for that alone */
    std::string wrong = body(self);
    algorithm->detach(self.slot.state);
    return wrong;
}

} // namespace

int Rank::barrier()
{
    collx_call call = {};

    return slot.run(&slot, &call);
}

int Rank::bcast(void *buf, size_t bytes, int root, bool contiguous)
{
    collx_call call = {};

    call.sbuf = call.rbuf = buf;
    call.root = root;
    call.contiguous = contiguous;
    call.elem_bytes = contiguous ? 1 : 4;
    call.count = static_cast<int64_t>(bytes / call.elem_bytes);
    call.bytes = static_cast<size_t>(call.count) * call.elem_bytes;
    return slot.run(&slot, &call);
}

int Rank::sum(const int64_t *send, int64_t *receive, int64_t count)
{
    collx_call call = {};

    call.sbuf = send;
    call.rbuf = receive;
    call.contiguous = true;
    call.elem_bytes = sizeof *send;
    call.count = count;
    call.bytes = static_cast<size_t>(count) * sizeof *send;
    call.op_kind = COLLX_OP_SUM;
    call.reduce = collx_reduce_kernel(COLLX_OP_SUM, COLLX_ELEM_I64);
    return slot.run(&slot, &call);
}

int Rank::compose(const Affine *send, Affine *receive, int64_t count)
{
    collx_call call = {};

    call.sbuf = send;
    call.rbuf = receive;
    call.elem_bytes = sizeof *send;
    call.count = count;
    call.bytes = static_cast<size_t>(count) * sizeof *send;
    call.op_kind = COLLX_OP_USER;
    return slot.run(&slot, &call);
}

void forbid_cma()
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {std::size(filter), filter};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0)) {
        perror("seccomp");
        abort();
    }
}

std::string run_team(const collx_algorithm *algorithm, int size, Ranks kind, bool crowded,
                     const std::function<std::string(Rank &)> &body, const collx_args *given,
                     const collx_place *places)
{
    collx_facts facts = {size,   1,      size, size, collx_places_numa_nodes(places, size),
                         places, nullptr};
    collx_args args = {};
    for (int i = 0; algorithm->params && algorithm->params[i].name; i++)
        args.value[i] = given ? given->value[i] : algorithm->params[i].initial;
    size_t bytes = algorithm->space ? algorithm->space(&facts, &args) : 0;
    /* What lies behind its piece of the segment is not an algorithm's to touch. */
    size_t page = 4096, rounded = (bytes + page - 1) / page * page;
    char *base = static_cast<char *>(
        mmap(nullptr, rounded + page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    mprotect(base + rounded, page, PROT_NONE);
    char *memory = base + (rounded - bytes) / COLLX_LINE * COLLX_LINE;
    Sockets sockets = open_sockets(algorithm->needs_messages ? size : 0);
    sockets.resize(size);
    std::string wrong;

    if (algorithm->place && facts.numa_nodes > 1) {
        collx_team first = {};
        first.size = size;
        first.places = places;
        algorithm->place(&first, &args, memory);
    }

    if (kind == Ranks::threads) {
        std::vector<std::string> results(size);
        std::vector<std::thread> threads;
        for (int rank = 0; rank < size; rank++)
            threads.emplace_back([&, rank] {
                results[rank] =
                    run_rank(algorithm, args, rank, size, crowded, memory, sockets, places, body);
            });
        for (int rank = 0; rank < size; rank++) {
            threads[rank].join();
            if (!results[rank].empty())
                wrong += "rank " + std::to_string(rank) + ": " + results[rank] + "\n";
        }
    } else {
        std::vector<pid_t> children;
        for (int rank = 0; rank < size; rank++) {
            pid_t child = fork();
            if (child == 0) {
                alarm(120);
                std::string result =
                    run_rank(algorithm, args, rank, size, crowded, memory, sockets, places, body);
                if (!result.empty())
                    fprintf(stderr, "rank %d: %s\n", rank, result.c_str());
                _exit(!result.empty());
            }
            children.push_back(child);
        }
        for (int rank = 0; rank < size; rank++) {
            int status = 0;
            waitpid(children[rank], &status, 0);
            if (status)
                wrong += "rank " + std::to_string(rank) + " ended with status " +
                         std::to_string(status) + "\n";
        }
    }
    close_sockets(sockets);
    munmap(base, rounded + page);
    return wrong;
}
