/* Nodes that are wired to an emulated board: processes, each with a barrier over its wires. */
#ifndef COLLX_TESTS_WIRED_H
#define COLLX_TESTS_WIRED_H

extern "C" {
#include "hw/barrier.h"
}

#include <atomic>
#include <functional>
#include <ostream>
#include <string>
#include <sys/types.h>

/* A board, and the way to it. */
struct Wiring {
    std::string name;  /* of the test */
    std::string board; /* "single" or "channels" */
    bool ports;        /* parallel ports by FUSE, else a file */
};
std::ostream &operator<<(std::ostream &out, const Wiring &wiring);

/* A board that runs, as long as this exists. */
class Emulated
{
  public:
    Emulated(const Wiring &wiring, unsigned nodes);
    Emulated(const Emulated &) = delete;
    Emulated &operator=(const Emulated &) = delete;
    ~Emulated();

    std::string why_not; /* "" if it runs: why this cannot be tried here */
    std::string spec(unsigned node) const;
    void stop();  /* by any process of the test */
    void start(); /* again */
    const std::string folder;

  private:
    const Wiring wiring_;
    const unsigned nodes_;
    pid_t process_ = -1;
};

/* What the processes of a test share. */
struct Shared {
    std::atomic<unsigned> arrived, round, failed;
    std::atomic<unsigned> entered[4][64]; /* [channel][node] */
};

/* A barrier that does not go over the wires. */
void meet(Shared &shared, unsigned nodes);

/* One process for each node; "" or what was wrong.  A body returns what was wrong, or throws it. */
std::string run_wired(unsigned nodes,
                      const std::function<std::string(unsigned node, Shared &shared)> &body);

/* A node's barrier: throws a std::string where something fails that should not. */
class Bar
{
  public:
    explicit Bar(const std::string &spec);
    Bar(const Bar &) = delete;
    Bar &operator=(const Bar &) = delete;
    ~Bar();

    /* 0 or what attach() returns; the sentence is in `why`. */
    int attach(unsigned channel, uint64_t participants, unsigned self);
    /* Enter and wait; the round is counted, and that all have entered is checked. */
    void barrier(unsigned channel, uint64_t participants, unsigned self, Shared &shared);
    const collx_bar_ops &ops = collx_barrier_wires;
    collx_bar *bar = nullptr;
    collx_bar_caps caps = {};
    char why[512] = "";
};

#endif
