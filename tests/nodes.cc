#include "tests/nodes.h"

extern "C" {
#include "base/options.h"
}

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fstream>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

/* Patience in seconds, with nodes that do not come to their end: less than meson has. */
enum { MOST = 16, PATIENCE = 120 };

struct Meeting {
    std::atomic<int> arrived, round;
    std::atomic<bool> failed; /* on some node; nobody waits for others any more */
    collx_seg_address address[MOST];
};

std::ostream &operator<<(std::ostream &out, const Driver &driver)
{
    return out << driver.name;
}

Environment::Environment(const Variables &variables)
{
    for (const auto &[name, value] : variables) {
        setenv(name.c_str(), value.c_str(), 1);
        names_.push_back(name);
    }
    collx_options_load(environ, nullptr);
}

Environment::~Environment()
{
    for (const std::string &name : names_)
        unsetenv(name.c_str());
    collx_options_load(environ, nullptr);
}

Variables standin_for_sisci(const std::string &path, int percent, const Variables &more)
{
    Variables variables = {
        {"COLLX_SISCI_LIBRARY", path},   {"COLLX_TEST_SISCI_FAIL", std::to_string(percent)},
        {"COLLX_TEST_SISCI_HARD", "20"}, {"COLLX_TEST_SISCI_PENDING", "20"},
        {"COLLX_TEST_SISCI_LATE", "30"},
    };
    variables.insert(variables.end(), more.begin(), more.end());
    return variables;
}

Folder::Folder()
{
    char name[] = "/tmp/collx-test-XXXXXX";
    if (!mkdtemp(name))
        abort();
    path = name;
}

Folder::~Folder()
{
    for (const std::string &file : files())
        unlink((path + "/" + file).c_str());
    rmdir(path.c_str());
}

static std::vector<std::string> entries(const std::string &path)
{
    std::vector<std::string> names;

    if (DIR *folder = opendir(path.c_str())) {
        while (const dirent *entry = readdir(folder))
            if (entry->d_name[0] != '.')
                names.push_back(entry->d_name);
        closedir(folder);
    }
    return names;
}

std::vector<std::string> Folder::files() const
{
    return entries(path);
}

std::vector<std::string> open_things()
{
    std::vector<std::string> things;
    std::ifstream maps("/proc/self/maps");

    for (std::string line; std::getline(maps, line);)
        for (const char *name : {"memfd:collx", "/collx-test-", "libsisci"})
            if (line.find(name) != std::string::npos)
                things.push_back(line);
    for (const std::string &fd : entries("/proc/self/fd")) {
        char target[512];
        ssize_t length = readlink(("/proc/self/fd/" + fd).c_str(), target, sizeof target - 1);
        if (length > 0 && !strncmp(target, "/proc", 5))
            continue;
        things.push_back("descriptor " + fd);
    }
    return things;
}

Node::Node(const Driver &driver, int own_rank, int nodes, Meeting *meeting)
    : rank(own_rank), size(nodes), ops(collx_seg_find(driver.driver.c_str())),
      remotes(static_cast<size_t>(nodes)), meeting_(meeting)
{
}

Node::~Node()
{
    close();
}

void Node::open(size_t lines, uint32_t preset)
{
    char why[512] = "";
    size_t bytes;

    if (ops->open(&net, &caps, why, sizeof why))
        throw "open: " + std::string(why);
    bytes = lines * caps.line;
    if (ops->make(net, bytes, &own, &local, &meeting_->address[rank], why, sizeof why))
        throw "make: " + std::string(why);
    for (size_t i = 0; i < bytes; i++)
        if (static_cast<char *>(local)[i])
            throw std::string("a new segment is not zeroed");
    for (size_t line = 0; preset && line < lines; line++)
        memcpy(static_cast<char *>(local) + collx_seg_flag(line, caps.line), &preset,
               sizeof preset);
    meet();
    for (int peer = 0; peer < size; peer++)
        if (collx_seg_connect(ops, net, &meeting_->address[peer], bytes,
                              &remotes[static_cast<size_t>(peer)], 20000, nullptr, nullptr, why,
                              sizeof why))
            throw "connect: " + std::string(why);
    meet();
}

void Node::close()
{
    for (collx_remote *&remote : remotes) {
        ops->disconnect(remote);
        remote = nullptr;
    }
    if (net)
        meet();
    ops->unmake(own);
    ops->close(net);
    own = nullptr;
    net = nullptr;
}

/* The acquire and release, both in the counter, order all before and after; round is the word that
 * those who came early wait for. */
void Node::meet()
{
    int round = meeting_->round.load();

    if (meeting_->arrived.fetch_add(1) + 1 == size) {
        meeting_->arrived = 0;
        meeting_->round++;
    }
    while (meeting_->round.load() == round && !meeting_->failed)
        sched_yield();
}

void Node::wait(size_t line, uint32_t epoch)
{
    while (!collx_seg_reached(collx_seg_read(local, collx_seg_flag(line, caps.line)), epoch)) {
        if (ops->progress)
            ops->progress(net);
        if (meeting_->failed)
            throw std::string("another node failed");
        sched_yield();
    }
}

void Node::deliver(const std::function<void(int peer)> &store)
{
    std::vector<uint8_t> state(remotes.size());
    auto again = [](void *context, unsigned i) {
        (*static_cast<const std::function<void(int)> *>(context))(static_cast<int>(i));
    };
    int error =
        collx_seg_deliver(ops, net, remotes.data(), static_cast<unsigned>(size), state.data(),
                          again, nullptr, const_cast<std::function<void(int)> *>(&store));
    if (error)
        throw "deliver: " + std::string(strerror(-error));
}

uint32_t Node::word(size_t line, size_t index) const
{
    return collx_seg_read(local, line * caps.line + index * sizeof(uint32_t));
}

static std::string run_node(const Driver &driver, int rank, int size, Meeting *meeting,
                            const std::function<std::string(Node &)> &body)
{
    Node node(driver, rank, size, meeting);
    std::string wrong;

    try {
        wrong = body(node);
    } catch (const std::string &thrown) {
        wrong = thrown;
    }
    if (!wrong.empty())
        meeting->failed = true;
    return wrong;
}

static std::string run_threads(const Driver &driver, int size, Meeting *meeting,
                               const std::function<std::string(Node &)> &body)
{
    Environment environment(driver.environment);
    std::vector<std::string> results(static_cast<size_t>(size));
    std::vector<std::thread> threads;
    std::string wrong;

    alarm(PATIENCE);
    threads.reserve(results.size());
    for (int rank = 0; rank < size; rank++)
        threads.emplace_back([&, rank] {
            results[static_cast<size_t>(rank)] = run_node(driver, rank, size, meeting, body);
        });
    for (std::thread &thread : threads)
        thread.join();
    alarm(0);
    for (const std::string &result : results)
        wrong += result.empty() ? "" : result + "\n";
    return wrong;
}

static std::string run_processes(const Driver &driver, int size, Meeting *meeting,
                                 const std::function<std::string(Node &)> &body)
{
    std::string wrong;

    for (int rank = 0; rank < size; rank++) {
        pid_t child = fork();
        if (child == 0) {
            alarm(PATIENCE);
            auto variables = driver.environment;
            variables.emplace_back("COLLX_TEST_SISCI_NODE", std::to_string(4 * (rank + 1)));
            Environment environment(variables);
            std::string result = run_node(driver, rank, size, meeting, body);
            if (!result.empty())
                fprintf(stderr, "node %d: %s\n", rank, result.c_str());
            _exit(!result.empty());
        }
    }
    for (int status = 0; ::wait(&status) > 0;) {
        if (!status)
            continue;
        meeting->failed = true;
        wrong += "a node ended with status " + std::to_string(status) + "\n";
    }
    return wrong;
}

std::string run_nodes(const Driver &driver, int size,
                      const std::function<std::string(Node &)> &body)
{
    void *memory =
        mmap(nullptr, sizeof(Meeting), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    Meeting *meeting = new (memory) Meeting();
    auto run = driver.kind == Nodes::threads ? run_threads : run_processes;
    std::string wrong = run(driver, size, meeting, body);

    munmap(memory, sizeof(Meeting));
    return wrong;
}
