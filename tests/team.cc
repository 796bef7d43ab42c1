#include "tests/team.h"

#include "tests/leaks.h"

extern "C" {
#include "algorithms/between/seg_retired.h"
#include "algorithms/facts.h"
#include "base/clock.h"
#include "hw/segment.h"
}

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <map>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace
{

/* The lender's datatype: elements as they are, or, where call->contiguous is false, in reverse
 * order of their bytes, so that a missing pack or unpack shows. */
void turn(const collx_call *call, const char *from, char *to, int64_t count)
{
    size_t size = call->elem_bytes;

    if (call->contiguous) {
        memcpy(to, from, static_cast<size_t>(count) * size);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        for (size_t b = 0; b < size; b++)
            to[i * size + b] = from[i * size + size - 1 - b];
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
int reduce(void *, const collx_call *call, const void *in, void *inout, int64_t count)
{
    const int64_t each = static_cast<int64_t>(call->elem_bytes / sizeof(Affine));

    for (int64_t i = 0; i < count * each; i++) {
        Affine left = static_cast<const Affine *>(in)[i];
        Affine &right = static_cast<Affine *>(inout)[i];
        right = after(left, right);
    }
    return 0;
}

void progress(void *)
{
}

enum { RANKS_MAX = 64, LONGEST = 1 << 19 };

/* Of a team that does not come to its end, in seconds, and of what is left of it, as threads, when
 * a rank has found something wrong, for which others may be waiting.  Long before the first a rank
 * that waits says for whom; and that is long before meson ends the test, which hears no word then.
 */
enum { PATIENCE = 120, PATIENCE_WHEN_WRONG = 10, STALL_MS = PATIENCE * 100 };

/* Where all ranks tell each other something.  Two in turn are enough: who tells the next but one
 * has been told by everybody in between. */
struct Board {
    std::atomic<int> told_by[RANKS_MAX]; /* how often each has */
    int32_t seen[RANKS_MAX];             /* collx_team.seen */
    char told[2][RANKS_MAX][COLLX_GATHER_MAX];
};

/* Of each rank, in calls that the algorithm does not take. */
using Contribution = char[LONGEST];

/* What is lent to a rank. */
struct Lent {
    int rank, size;
    std::vector<int> socket; /* to each other rank */
    Board *board;
    Contribution *data;
    int gathered;
};

int gather(void *ctx, const void *own, void *all, size_t bytes)
{
    Lent &lent = *static_cast<Lent *>(ctx);
    Board &board = *lent.board;
    char(*told)[COLLX_GATHER_MAX] = board.told[lent.gathered++ & 1];
    const uint64_t begin = collx_clock_ns();
    bool said = false;

    memcpy(told[lent.rank], own, bytes);
    board.told_by[lent.rank] = lent.gathered;
    for (int rank = 0; rank < lent.size; rank++) {
        while (board.told_by[rank] < lent.gathered) {
            sched_yield();
            if (said || collx_clock_ns() - begin < STALL_MS * 1000000ull)
                continue;
            said = true;
            fprintf(stderr, "rank %d waits for rank %d outside of the algorithm\n", lent.rank,
                    rank);
        }
        memcpy(static_cast<char *>(all) + static_cast<size_t>(rank) * bytes, told[rank], bytes);
    }
    return 0;
}

/* All ranks have called it.  Returns the process of each. */
std::vector<pid_t> meet(Lent &lent)
{
    const pid_t own = getpid();
    std::vector<pid_t> all(static_cast<size_t>(lent.size));

    gather(&lent, &own, all.data(), sizeof own);
    return all;
}

/* What every rank has contributed to element `i`, in the order of the ranks. */
void combine(const Lent &lent, const collx_call &call, size_t i)
{
    for (int rank = 0; rank < lent.size; rank++) {
        const char *data = lent.data[rank];
        if (call.op_kind == COLLX_OP_SUM) {
            const int64_t own = reinterpret_cast<const int64_t *>(data)[i];
            int64_t &all = static_cast<int64_t *>(call.rbuf)[i];
            all = rank ? all + own : own;
        } else {
            const Affine own = reinterpret_cast<const Affine *>(data)[i];
            Affine &all = static_cast<Affine *>(call.rbuf)[i];
            all = rank ? after(all, own) : own;
        }
    }
}

/* What an MPI library is there for: calls that an algorithm does not take.  An Allreduce's elements
 * lie in the same way in all buffers, whatever they are packed to. */
void carry_out_without(Lent &lent, collx_kind kind, const collx_call &call)
{
    const size_t each = call.op_kind == COLLX_OP_SUM ? sizeof(int64_t) : sizeof(Affine);

    if (call.bytes > LONGEST)
        abort();
    if (kind == COLLX_ALLREDUCE)
        memcpy(lent.data[lent.rank], call.sbuf, call.bytes);
    else if (kind == COLLX_BCAST && call.root == lent.rank)
        pack(nullptr, &call, call.sbuf, 0, call.count, lent.data[lent.rank]);
    meet(lent);
    if (kind == COLLX_BCAST)
        unpack(nullptr, &call, lent.data[call.root], call.rbuf, 0, call.count);
    else if (kind == COLLX_ALLREDUCE)
        for (size_t i = 0; i < call.bytes / each; i++)
            combine(lent, call, i);
    meet(lent);
}

/* Shared memory, by another name, and as if lines did not arrive whole but for the first node. */
collx_seg_ops lent_segments;

int segments(void *ctx, const char *name, const int *leader, int count, size_t,
             const collx_seg_ops **ops, collx_net **net, collx_seg_caps *caps, char *why,
             size_t size)
{
    const Lent &lent = *static_cast<const Lent *>(ctx);

    *ops = &lent_segments;
    *net = nullptr;
    if (strcmp(name, "rma") != 0)
        return 1;
    for (int i = 0; i < count; i++)
        if (leader[i] == lent.rank) {
            int error = collx_seg_find("shm")->open(net, caps, why, size);
            if (i > 0)
                caps->flags &= ~static_cast<unsigned>(COLLX_SEG_WHOLE_LINES | COLLX_SEG_ORDERED);
            return error;
        }
    return 0;
}

int listen_for(void *, int)
{
    return 0;
}

/* Between each two ranks a pair of sockets. */
void open_sockets(std::vector<Lent> &lent)
{
    for (Lent &a : lent) {
        a.socket.resize(lent.size(), -1);
        for (int b = 0; b < a.rank; b++) {
            int ends[2];
            if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends))
                abort();
            a.socket[b] = ends[0];
            lent[b].socket[a.rank] = ends[1];
        }
    }
}

void close_sockets(const std::vector<Lent> &lent)
{
    for (const Lent &each : lent)
        for (int socket : each.socket)
            if (socket >= 0)
                close(socket);
}

/* Also a message of no bytes has to get there: it is one. */
size_t length_of(const collx_message &message)
{
    return message.bytes ? message.bytes : 1;
}

/* As far as it goes now.  False: the other side is gone. */
bool move(int socket, const collx_message &message, size_t &done)
{
    char nothing = 0, *at = message.bytes ? static_cast<char *>(message.data) + done : &nothing;
    size_t rest = length_of(message) - done;
    ssize_t moved =
        message.sends ? send(socket, at, rest, MSG_NOSIGNAL) : recv(socket, at, rest, 0);

    done += moved > 0 ? static_cast<size_t>(moved) : 0;
    return moved > 0 || (moved < 0 && errno == EAGAIN);
}

int transfer(void *ctx, const collx_message *messages, int count)
{
    const Lent &lent = *static_cast<const Lent *>(ctx);
    std::vector<size_t> done(static_cast<size_t>(count));

    for (;;) {
        std::vector<pollfd> fds;
        std::vector<int> which;
        for (int i = 0; i < count; i++)
            if (done[i] < length_of(messages[i])) {
                short events = messages[i].sends ? POLLOUT : POLLIN;
                fds.push_back({lent.socket.at(messages[i].rank), events, 0});
                which.push_back(i);
            }
        if (fds.empty())
            return 0;
        if (poll(fds.data(), fds.size(), -1) < 0)
            return 1;
        for (size_t i = 0; i < fds.size(); i++)
            if (fds[i].revents && !move(fds[i].fd, messages[which[i]], done[which[i]]))
                return 1;
    }
}

const collx_lender_ops ops = {"MPI_", "",       progress,   reduce,   pack, unpack,     0, elements,
                              gather, segments, listen_for, transfer, 99,   UNREACHABLE};

/* What a run is made of, the same for all its ranks. */
struct Run {
    const collx_algorithm *algorithm;
    collx_args args;
    int size;
    bool crowded;
    const collx_place *places;
    const std::vector<int> &node;
    const std::function<std::string(Rank &)> &body;
};

/* Nothing is left that waits for others to be done with it. */
bool is_swept()
{
    for (int tries = 0; tries < 100000; tries++) {
        if (!collx_seg_retired_sweep())
            return true;
        usleep(100);
    }
    return false;
}

std::string run_rank(const Run &run, int rank, void *memory, Lent &lent)
{
    const collx_algorithm *algorithm = run.algorithm;
    char why[512] = "";
    Rank self = {};

    self.team.rank = rank;
    self.team.size = run.size;
    self.team.places = run.places;
    self.team.node = run.node.empty() ? nullptr : run.node.data();
    self.team.ops = &ops;
    self.team.ctx = &lent;
    self.team.name = "a test";
    self.team.crowded = run.crowded;
    self.team.spins = run.crowded ? 0 : 200;
    self.team.pauses = 1;
    self.team.stall_ms = STALL_MS;
    self.team.seen = run.crowded && run.node.empty() ? lent.board->seen : nullptr;
    self.algorithm = algorithm;
    if (algorithm->attach(&self.team, &run.args, memory, &self.slot))
        return "attach failed";
    std::string wrong;
    if (algorithm->connect && algorithm->connect(&self.team, &self.slot, why, sizeof why))
        wrong = std::string("connect failed: ") + why;
    self.team.places = nullptr; /* they were for that alone */
    self.team.node = nullptr;
    if (wrong.empty())
        wrong = run.body(self);
    /* Else it would be the lender that is tested. */
    if (wrong.empty() && self.taken * 4 < self.calls)
        wrong = "the algorithm took " + std::to_string(self.taken) + " of " +
                std::to_string(self.calls) + " calls";
    algorithm->detach(self.slot.state);
    if (wrong.empty() && !self.abandoned && !is_swept())
        wrong = "something still waits to be undone";
    return wrong;
}

/* What a process ended by, in words. */
std::string describe_end(int status)
{
    if (!WIFSIGNALED(status))
        return "ended with exit code " + std::to_string(WEXITSTATUS(status));
    const int signal = WTERMSIG(status);
    std::string text = "died by signal " + std::to_string(signal) + " (" + strsignal(signal) + ")";
    if (signal == SIGSEGV)
        text += ": it may have touched memory beyond a buffer or its piece of the segment";
    else if (signal == SIGALRM)
        text += ": it did not come to its end in time";
    return text;
}

/* Of all ranks, which are by their processes.  When one has failed the others may wait for it for
 * ever, and are ended at once. */
std::string wait_for(std::map<pid_t, int> children)
{
    std::map<int, int> failed; /* rank to status */
    std::string wrong;
    bool ended = false;

    while (!children.empty()) {
        int status = 0;
        const auto child = children.find(wait(&status));
        if (child == children.end())
            continue; /* an emulator's, say */
        const bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
        if (status && !(ended && killed))
            failed[child->second] = status;
        children.erase(child);
        /* Who kills itself does so for a test of what the others make of that. */
        if (ended || !status || killed)
            continue;
        ended = !children.empty();
        for (const auto &other : children)
            kill(other.first, SIGKILL);
    }
    for (const auto &[rank, status] : failed)
        wrong += "rank " + std::to_string(rank) + " " + describe_end(status) + "\n";
    return wrong + (ended ? "so the others were ended\n" : "");
}

} // namespace

int Rank::carry_out(collx_call &call)
{
    calls++;
    if (algorithm->takes && !algorithm->takes(slot.state, &call)) {
        carry_out_without(*static_cast<Lent *>(team.ctx), algorithm->kind, call);
        return 0;
    }
    taken++;
    return slot.run(&slot, &call);
}

int Rank::barrier()
{
    collx_call call = {};

    return carry_out(call);
}

int Rank::bcast(void *buf, size_t bytes, int root, bool contiguous, size_t each)
{
    collx_call call = {};

    call.sbuf = call.rbuf = buf;
    call.root = root;
    call.contiguous = contiguous;
    call.elem_bytes = each ? each : contiguous ? 1 : 4;
    call.count = static_cast<int64_t>(bytes / call.elem_bytes);
    call.bytes = static_cast<size_t>(call.count) * call.elem_bytes;
    return carry_out(call);
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
    return carry_out(call);
}

int Rank::compose(const Affine *send, Affine *receive, int64_t count, int64_t each)
{
    collx_call call = {};

    call.sbuf = send;
    call.rbuf = receive;
    call.elem_bytes = static_cast<size_t>(each) * sizeof *send;
    call.count = count / each;
    call.bytes = static_cast<size_t>(call.count) * call.elem_bytes;
    call.op_kind = COLLX_OP_USER;
    return carry_out(call);
}

std::vector<pid_t> Rank::meet()
{
    return ::meet(*static_cast<Lent *>(team.ctx));
}

void await_end_of(pid_t process)
{
    while (!kill(process, 0))
        usleep(1000);
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
                     const collx_place *places, const std::vector<int> &node)
{
    std::vector<collx_member> members;
    std::vector<int> counted(static_cast<size_t>(size));
    for (int rank = 0; rank < size; rank++)
        members.push_back({static_cast<uint64_t>(node.empty() ? 0 : node[rank]), rank});
    collx_facts facts = {};
    collx_facts_init(&facts, members.data(), size, counted.data());
    facts.numa_nodes = facts.nodes > 1 ? 1 : collx_places_numa_nodes(places, size);
    facts.places = places;

    lent_segments = *collx_seg_find("shm");
    lent_segments.open = nullptr;
    Run run = {algorithm, {}, size, crowded, places, counted, body};
    for (int i = 0; algorithm->params && algorithm->params[i].name; i++)
        run.args.value[i] = given ? given->value[i] : algorithm->params[i].initial;
    size_t bytes = algorithm->space ? algorithm->space(&facts, &run.args) : 0;
    /* What lies behind its piece of the segment is not an algorithm's to touch. */
    size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE)),
           rounded = (bytes + page - 1) / page * page, each = rounded + page;
    size_t all = each * static_cast<size_t>(facts.nodes), board = (sizeof(Board) + page) & -page;
    size_t contributions = static_cast<size_t>(size) * LONGEST;
    char *base =
        static_cast<char *>(mmap(nullptr, all + board + contributions, PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    std::vector<void *> memory;
    for (int i = 0; i < facts.nodes; i++) {
        char *own = base + static_cast<size_t>(i) * each;
        mprotect(own + rounded, page, PROT_NONE);
        memory.push_back(bytes ? own + (rounded - bytes) / COLLX_LINE * COLLX_LINE : nullptr);
    }
    /* Of every fourth team: to touch all of it takes as long as all else that most of them do. */
    static unsigned teams;
    const bool used_before = algorithm->clear && teams++ % 4 == 0;
    for (void *own : memory)
        if (used_before && own) {
            memset(own, 0xa5, bytes);
            algorithm->clear(&facts, &run.args, own);
        }
    std::vector<Lent> lent;
    for (int rank = 0; rank < size; rank++)
        lent.push_back({rank,
                        size,
                        {},
                        new (base + all) Board(),
                        reinterpret_cast<Contribution *>(base + all + board),
                        0});
    if (algorithm->connect)
        open_sockets(lent);
    std::string wrong;

    if (algorithm->place && facts.numa_nodes > 1) {
        collx_team first = {};
        first.size = size;
        first.places = places;
        algorithm->place(&first, &run.args, memory[0]);
    }

    auto run_one = [&](int rank) { return run_rank(run, rank, memory[counted[rank]], lent[rank]); };
    if (kind == Ranks::threads) {
        std::vector<std::string> results(size);
        std::vector<std::thread> threads;
        alarm(PATIENCE);
        for (int rank = 0; rank < size; rank++)
            threads.emplace_back([&, rank] {
                results[rank] = run_one(rank);
                if (results[rank].empty())
                    return;
                /* If the others wait for it nobody comes to saying what is wrong below. */
                fprintf(stderr, "rank %d: %s\n", rank, results[rank].c_str());
                alarm(PATIENCE_WHEN_WRONG);
            });
        for (int rank = 0; rank < size; rank++) {
            threads[rank].join();
            if (!results[rank].empty())
                wrong += "rank " + std::to_string(rank) + ": " + results[rank] + "\n";
        }
        alarm(0);
    } else {
        leaks_prepare();
        std::map<pid_t, int> children;
        for (int rank = 0; rank < size; rank++) {
            pid_t child = fork();
            if (child == 0) {
                alarm(PATIENCE);
                leaks_watch();
                std::string result = run_one(rank);
                if (result.empty() && leaks())
                    result = "it has leaked memory";
                if (!result.empty())
                    fprintf(stderr, "rank %d: %s\n", rank, result.c_str());
                _exit(!result.empty());
            }
            children[child] = rank;
        }
        wrong = wait_for(std::move(children));
    }
    close_sockets(lent);
    munmap(base, all + board + contributions);
    return wrong;
}
