/* The board's wires in a file that nodes map: the driver `emu`. */
#include "hw/emulator.h"
#include "hw/emulator/board.h"

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace
{

constexpr int idle_turns = 100; /* before the board sleeps */

long futex(uint32_t *word, int operation, uint32_t value, const timespec *timeout)
{
    return syscall(SYS_futex, word, operation, value, timeout, nullptr, 0);
}

void sleep_until_rung(emulator_file &file, uint32_t heard)
{
    const timespec timeout = {0, 100000000}; /* then look whether to end */

    /* In one order with a node's ring and its load of `asleep`: either it sees that the board
     * sleeps, or the kernel sees that it has rung. */
    __atomic_store_n(&file.asleep, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&file.ring, __ATOMIC_SEQ_CST) == heard)
        futex(&file.ring, FUTEX_WAIT, heard, &timeout);
    __atomic_store_n(&file.asleep, 0, __ATOMIC_RELAXED);
}

void answer(emulator_file &file, Board &board)
{
    for (unsigned node = 0; node < board.nodes; node++) {
        emulator_wire *out = file.wires + node * (Board::outs + Board::ins);
        for (unsigned wire = 0; wire < Board::outs; wire++)
            /* Acquires what the node released with it, to be passed on with the answer: see
             * emu_set(). */
            board.set(node, wire, __atomic_load_n(&out[wire].level, __ATOMIC_ACQUIRE));
    }
    board.run();
    for (unsigned node = 0; node < board.nodes; node++) {
        emulator_wire *in = file.wires + node * (Board::outs + Board::ins) + Board::outs;
        for (unsigned wire = 0; wire < Board::ins; wire++) {
            const uint32_t level = board.get(node, wire);
            if (in[wire].level == level)
                continue;
            /* The partner is a node's load: see wire_emu.c, also for the order of the two. */
            __atomic_store_n(&in[wire].level, level, __ATOMIC_SEQ_CST);
            if (__atomic_load_n(&in[wire].sleepers, __ATOMIC_SEQ_CST))
                futex(&in[wire].level, FUTEX_WAKE, INT_MAX, nullptr);
        }
    }
}

void run(emulator_file &file, Board &board)
{
    uint32_t heard = 0;

    for (int idle = 0; !stopping();) {
        /* Acquires the levels that were set before the ring. */
        const uint32_t ring = __atomic_load_n(&file.ring, __ATOMIC_ACQUIRE);
        if (ring == heard && idle++ < idle_turns) {
            sched_yield();
        } else if (ring == heard) {
            sleep_until_rung(file, heard);
        } else {
            idle = 0;
            answer(file, board);
            heard = ring;
            /* The partner is the node's load when it waits for its levels to have an effect. */
            __atomic_store_n(&file.heard, heard, __ATOMIC_RELEASE);
        }
    }
}

} // namespace

int serve_file(Board &board, const std::string &path)
{
    struct flock lock = {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    lock.l_start = EMULATOR_ALIVE;
    lock.l_len = 1;

    const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0) {
        std::fprintf(stderr, "collx-hwemu: cannot make %s: %s\n", path.c_str(),
                     std::strerror(errno));
        return 1;
    }
    if (fcntl(fd, F_OFD_SETLK, &lock)) {
        if (errno == EAGAIN)
            std::fprintf(stderr, "collx-hwemu: a board runs on %s already\n", path.c_str());
        else
            std::fprintf(stderr, "collx-hwemu: cannot lock %s: %s\n", path.c_str(),
                         std::strerror(errno));
        return 1;
    }
    const size_t bytes = emulator_bytes(board.nodes, Board::outs, Board::ins);
    void *map = MAP_FAILED;
    /* Not made shorter: nodes may still have it from the last time, and would get SIGBUS. */
    errno = posix_fallocate(fd, 0, static_cast<off_t>(bytes));
    if (!errno)
        map = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED) {
        std::fprintf(stderr, "collx-hwemu: no room for %s: %s\n", path.c_str(),
                     std::strerror(errno));
        return 1;
    }
    std::memset(map, 0, bytes);
    auto &file = *static_cast<emulator_file *>(map);
    file.nodes = board.nodes;
    file.channels = Board::channels;
    file.outs = Board::outs;
    file.ins = Board::ins;
    /* Releases the fields above to nodes that find the magic there. */
    __atomic_store_n(&file.magic, EMULATOR_MAGIC, __ATOMIC_RELEASE);
    std::puts("ready");
    std::fflush(stdout);
    run(file, board);
    close(fd);
    return 0;
}
