#include "tests/wired.h"
#include "tests/team.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <new>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

std::ostream &operator<<(std::ostream &out, const Wiring &wiring)
{
    return out << wiring.name;
}

static std::string new_folder()
{
    char name[] = "/tmp/collx-test-XXXXXX";
    if (!mkdtemp(name))
        abort();
    return name;
}

Emulated::Emulated(const Wiring &wiring, unsigned nodes)
    : folder(new_folder()), wiring_(wiring), nodes_(nodes)
{
    start();
}

void Emulated::start()
{
    const std::string program = std::string(COLLX_TEST_HWEMU) + wiring_.board;
    const std::string path = wiring_.ports ? folder : folder + "/board";
    const std::string count = "--nodes=" + std::to_string(nodes_);
    int out[2];
    char line[16] = "";

    if (access(program.c_str(), X_OK)) {
        why_not = "no emulator: it needs verilator, Debian's package of that name";
        return;
    }
    if (wiring_.ports && access("/dev/fuse", R_OK | W_OK)) {
        why_not = "no right to /dev/fuse";
        return;
    }
    if (pipe2(out, O_CLOEXEC))
        abort();
    process_ = fork();
    if (process_ == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        dup2(out[1], 1);
        execl(program.c_str(), program.c_str(), count.c_str(), path.c_str(),
              wiring_.ports ? "--ports" : nullptr, nullptr);
        _exit(127);
    }
    close(out[1]);
    if (read(out[0], line, sizeof line - 1) <= 0) {
        int status = 0;
        waitpid(process_, &status, 0);
        process_ = -1;
        why_not = "the emulator does not start, by exit code " +
                  std::to_string(WEXITSTATUS(status)) +
                  (wiring_.ports ? ": FUSE cannot mount here, or was not there to build it" : "");
    }
    close(out[0]);
}

void Emulated::stop()
{
    if (process_ > 0) {
        kill(process_, SIGTERM);
        if (waitpid(process_, nullptr, 0) < 0)
            await_end_of(process_); /* it is a child of the process that forked this one */
    }
    process_ = -1;
}

Emulated::~Emulated()
{
    stop();
    unlink((folder + "/board").c_str());
    rmdir(folder.c_str());
}

std::string Emulated::spec(unsigned node) const
{
    const std::string channels =
        wiring_.board == "single" ? ",nodes=" + std::to_string(nodes_) : std::string(",channels=4");
    if (wiring_.ports)
        return "ppdev:" + folder + "/parport" + std::to_string(node) + channels;
    return "emu:" + folder + "/board,node=" + std::to_string(node) + channels;
}

void meet(Shared &shared, unsigned nodes)
{
    const unsigned round = shared.round;

    if (++shared.arrived == nodes) {
        shared.arrived = 0;
        shared.round++;
    }
    while (shared.round == round) {
        if (shared.failed)
            throw std::string("another node failed");
        sched_yield();
    }
}

std::string run_wired(unsigned nodes,
                      const std::function<std::string(unsigned node, Shared &shared)> &body)
{
    void *memory =
        mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    Shared *shared = new (memory) Shared();
    std::string wrong;
    std::string pids;

    for (unsigned node = 0; node < nodes; node++) {
        if (fork())
            continue;
        std::string result;
        alarm(60);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        try {
            result = body(node, *shared);
        } catch (const std::string &thrown) {
            result = thrown;
        }
        if (!result.empty()) {
            shared->failed++;
            fprintf(stderr, "node %u: %s\n", node, result.c_str());
        }
        _exit(!result.empty());
    }
    for (unsigned node = 0; node < nodes; node++) {
        int status;
        /* Of this process group's children, the emulator is one that does not end. */
        if (::wait(&status) < 0)
            break;
        if (status) {
            shared->failed++;
            wrong += "a node ended with status " + std::to_string(status) + "\n";
        }
    }
    munmap(memory, sizeof(Shared));
    return wrong;
}

Bar::Bar(const std::string &spec)
{
    if (ops.open(&bar, spec.c_str(), &caps, why, sizeof why))
        throw "cannot open " + spec + ": " + why;
}

Bar::~Bar()
{
    ops.close(bar);
}

int Bar::attach(unsigned channel, uint64_t participants, unsigned self)
{
    return ops.attach(bar, channel, participants, self, why, sizeof why);
}

void Bar::barrier(unsigned channel, uint64_t participants, unsigned self, Shared &shared)
{
    const unsigned round = ++shared.entered[channel][self];

    if (ops.enter(bar, channel))
        throw std::string("cannot enter");
    if (int error = ops.wait(bar, channel, 30000))
        throw "round " + std::to_string(round) + ": " + strerror(-error);
    for (unsigned node = 0; node < 64; node++)
        if (participants >> node & 1 && shared.entered[channel][node] < round)
            throw "released from round " + std::to_string(round) + " without node " +
                std::to_string(node);
}
