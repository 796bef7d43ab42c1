/* What hw/segment.h promises, on every driver: the protocols of its first comment, between nodes.
 */
#include "tests/nodes.h"

#include "tests/sisci/standin.h"

#include <atomic>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

namespace
{

/* Sisci through the stand-in: `percent` of all checks fail. */
Driver sisci(const std::string &name, int percent, const Variables &more = {},
             Nodes kind = Nodes::processes)
{
    return {name, "sisci", standin_for_sisci(COLLX_TEST_SISCI, percent, more), kind};
}

class Segments : public testing::TestWithParam<Driver>
{
  protected:
    Segments() : driver(GetParam())
    {
        driver.environment.emplace_back("COLLX_TEST_SISCI_FOLDER", folder.path);
    }

    ~Segments() override
    {
        EXPECT_EQ(folder.files(), std::vector<std::string>()) << "files are left behind";
    }

    Folder folder;
    Driver driver;
};

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr uint32_t rounds = 1000;
#else
constexpr uint32_t rounds = 4000;
#endif

void barrier(Node &node, uint32_t epoch)
{
    const size_t mine = static_cast<size_t>(node.rank);

    node.deliver([&](int peer) {
        node.ops->store(node.remotes[static_cast<size_t>(peer)],
                        collx_seg_flag(mine, node.caps.line), epoch);
    });
    for (int peer = 0; peer < node.size; peer++)
        node.wait(static_cast<size_t>(peer), epoch);
}

/* Whether failures are injected, and how many this process has seen. */
bool fails(const Driver &driver)
{
    for (const auto &[name, value] : driver.environment)
        if (name == "COLLX_TEST_SISCI_FAIL")
            return value != "0";
    return false;
}

standin::Counts counts()
{
    standin::Counts counts = {};
    void *library = dlopen(COLLX_TEST_SISCI, RTLD_NOW | RTLD_NOLOAD);
    if (library) {
        auto *get = reinterpret_cast<void (*)(standin::Counts *)>(dlsym(library, STANDIN_COUNTS));
        get(&counts);
        dlclose(library);
    }
    return counts;
}

/* Nobody leaves a barrier that somebody has not entered, also where epochs wrap around. */
TEST_P(Segments, Barriers)
{
    constexpr int nodes = 3;
    constexpr uint32_t first = 0u - rounds / 2;
    void *memory = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    auto *entered = new (memory) std::atomic<uint32_t>[nodes]();
    bool injected = fails(driver);

    EXPECT_EQ(run_nodes(driver, nodes,
                        [&](Node &node) -> std::string {
                            node.open(nodes, first - 1);
                            for (uint32_t i = 0; i < rounds; i++) {
                                entered[node.rank] = i + 1;
                                barrier(node, first + i);
                                for (int peer = 0; peer < nodes; peer++) {
                                    uint32_t at = entered[peer];
                                    if (at < i + 1 || at > i + 2)
                                        return "left barrier " + std::to_string(i) + " with " +
                                               std::to_string(peer) + " at " + std::to_string(at);
                                }
                            }
                            if (injected && counts().failures < rounds / 200)
                                return "too few failures were injected to say anything";
                            node.close();
                            return "";
                        }),
              "");
    munmap(memory, 4096);
}

uint32_t value(int from, uint32_t epoch, size_t index)
{
    return epoch * 1000003u + static_cast<uint32_t>(from) * 769u + static_cast<uint32_t>(index);
}

/* Data beside the flag, in one line.  Two lines for each writer, in turns: a place is reused when
 * the barrier after it has said that it was read. */
TEST_P(Segments, FlagSpeaksForItsLine)
{
    constexpr int nodes = 3;

    EXPECT_EQ(run_nodes(driver, nodes,
                        [&](Node &node) -> std::string {
                            node.open(2 * nodes);
                            if (!(node.caps.flags & COLLX_SEG_WHOLE_LINES))
                                return "";
                            const size_t data = node.caps.line / 4 - 1;
                            std::vector<uint32_t> line(data + 1);
                            for (uint32_t epoch = 1; epoch <= rounds; epoch++) {
                                size_t half = epoch % 2 * nodes;
                                for (size_t i = 0; i < data; i++)
                                    line[i] = value(node.rank, epoch, i);
                                line[data] = epoch;
                                node.deliver([&](int peer) {
                                    size_t place = half + static_cast<size_t>(node.rank);
                                    node.ops->copy(node.remotes[static_cast<size_t>(peer)],
                                                   place * node.caps.line, line.data(),
                                                   node.caps.line);
                                });
                                for (int peer = 0; peer < nodes; peer++) {
                                    size_t place = half + static_cast<size_t>(peer);
                                    node.wait(place, epoch);
                                    for (size_t i = 0; i < data; i++)
                                        if (node.word(place, i) != value(peer, epoch, i))
                                            return "wrong data in round " + std::to_string(epoch);
                                }
                            }
                            return "";
                        }),
              "");
}

/* Data in other lines: it has to be checked before its flag is stored, or else be in order. */
TEST_P(Segments, FlagSpeaksForDataThatWasChecked)
{
    constexpr int nodes = 3;
    constexpr size_t lines = 5; /* of data, for each writer, twice; then the flags */

    EXPECT_EQ(
        run_nodes(driver, nodes,
                  [&](Node &node) -> std::string {
                      node.open(2 * nodes * (lines + 1));
                      const size_t data = lines * node.caps.line / 4;
                      const bool checked = !(node.caps.flags & COLLX_SEG_ORDERED);
                      std::vector<uint32_t> own(data);
                      for (uint32_t epoch = 1; epoch <= rounds / 4; epoch++) {
                          size_t half = epoch % 2 * nodes;
                          size_t mine = half + static_cast<size_t>(node.rank);
                          for (size_t i = 0; i < data; i++)
                              own[i] = value(node.rank, epoch, i);
                          auto put = [&](int peer) {
                              node.ops->copy(node.remotes[static_cast<size_t>(peer)],
                                             mine * lines * node.caps.line, own.data(), 4 * data);
                          };
                          if (checked)
                              node.deliver(put);
                          node.deliver([&](int peer) {
                              if (!checked)
                                  put(peer);
                              node.ops->store(
                                  node.remotes[static_cast<size_t>(peer)],
                                  collx_seg_flag(2 * nodes * lines + mine, node.caps.line), epoch);
                          });
                          for (int peer = 0; peer < nodes; peer++) {
                              size_t place = half + static_cast<size_t>(peer);
                              node.wait(2 * nodes * lines + place, epoch);
                              for (size_t i = 0; i < data; i++)
                                  if (node.word(place * lines, i) != value(peer, epoch, i))
                                      return "wrong data in round " + std::to_string(epoch);
                          }
                      }
                      return "";
                  }),
        "");
}

/* One check a round for the data of this round and the flag of the last one. */
TEST_P(Segments, PipelineWithOneCheckARound)
{
    constexpr size_t lines = 4, slots = 4; /* of data; flag of the data, flag of the reader */

    EXPECT_EQ(run_nodes(driver, 2,
                        [&](Node &node) -> std::string {
                            node.open(slots * lines + 2);
                            const size_t data = lines * node.caps.line / 4, told = slots * lines;
                            const size_t peer = static_cast<size_t>(1 - node.rank);
                            collx_remote *remote = node.remotes[peer];
                            std::vector<uint32_t> own(data);
                            auto flag = [&](size_t line, uint32_t epoch) {
                                node.ops->store(remote, collx_seg_flag(line, node.caps.line),
                                                epoch);
                            };
                            for (uint32_t epoch = 1; epoch <= rounds / 2 + 1; epoch++) {
                                size_t slot = epoch % slots * lines;
                                if (node.rank == 0) {
                                    if (epoch > slots)
                                        node.wait(told + 1, epoch - static_cast<uint32_t>(slots));
                                    for (size_t i = 0; i < data; i++)
                                        own[i] = value(0, epoch, i);
                                    node.deliver([&](int to) {
                                        if (to == 0)
                                            return;
                                        node.ops->copy(remote, slot * node.caps.line, own.data(),
                                                       4 * data);
                                        flag(told, epoch - 1);
                                    });
                                } else if (epoch <= rounds / 2) {
                                    node.wait(told, epoch);
                                    for (size_t i = 0; i < data; i++)
                                        if (node.word(slot, i) != value(0, epoch, i))
                                            return "wrong data in round " + std::to_string(epoch);
                                    node.deliver([&](int to) {
                                        if (to == 0)
                                            flag(told + 1, epoch);
                                    });
                                }
                            }
                            return "";
                        }),
              "");
}

TEST_P(Segments, NothingIsLeftBehind)
{
    EXPECT_EQ(run_nodes(driver, 2,
                        [&](Node &node) -> std::string {
                            /* Threads see what the others have open. */
                            const bool alone = driver.kind == Nodes::processes;
                            std::vector<std::string> before = open_things();
                            for (uint32_t i = 1; i <= 50; i++) {
                                node.open(2);
                                barrier(node, 1);
                                node.close();
                            }
                            if (alone && open_things() != before)
                                return "something is still open: " + open_things().back();
                            return "";
                        }),
              "");
}

#ifndef __SANITIZE_THREAD__ /* It sees nothing of what passes between processes. */
INSTANTIATE_TEST_SUITE_P(
    Drivers, Segments,
    testing::Values(Driver{"shm", "shm"}, sisci("sisci_0", 0), sisci("sisci_1", 1),
                    sisci("sisci_10", 10), sisci("sisci_50", 50),
                    sisci("sisci_10_flush", 10, {{"COLLX_SISCI_CHECK", "flush"}}),
                    sisci("sisci_10_full", 10, {{"COLLX_SISCI_CHECK", "full"}}),
                    sisci("sisci_10_one_check", 10,
                          {{"COLLX_SISCI_ONE_CHECK", "on"}, {"COLLX_TEST_SISCI_SHARED", "1"}}),
                    sisci("sisci_10_long_lines", 10,
                          {{"COLLX_SISCI_LINE", "128"}, {"COLLX_TEST_SISCI_LINE", "128"}}),
                    sisci("sisci_10_words", 10, {{"COLLX_SISCI_LINE", "4"}}),
                    sisci("sisci_1_slow", 1,
                          {{"COLLX_TEST_SISCI_LATENCY_NS", "3000"},
                           {"COLLX_TEST_SISCI_LINE_NS", "200"},
                           {"COLLX_TEST_SISCI_BARRIER_NS", "1000"},
                           {"COLLX_TEST_SISCI_CHECK_NS", "3000"}})),
    [](const testing::TestParamInfo<Driver> &info) { return info.param.name; });
#endif

INSTANTIATE_TEST_SUITE_P(Threads, Segments,
                         testing::Values(Driver{"shm_threads", "shm", {}, Nodes::threads},
                                         sisci("sisci_10_threads", 10, {}, Nodes::threads)),
                         [](const testing::TestParamInfo<Driver> &info) {
                             return info.param.name;
                         });

} // namespace
