/* Nodes without MPI: forked processes, or threads for ThreadSanitizer, that have segments by one
 * driver, and a way to meet that does not depend on it. */
#ifndef COLLX_TESTS_NODES_H
#define COLLX_TESTS_NODES_H

extern "C" {
#include "hw/segment.h"
}

#include <functional>
#include <ostream>
#include <string>
#include <vector>

/* Of the environment: names and values. */
using Variables = std::vector<std::pair<std::string, std::string>>;

enum class Nodes { processes, threads };

struct Driver {
    std::string name; /* of the test */
    std::string driver;
    Variables environment = {};
    Nodes kind = Nodes::processes;
};

std::ostream &operator<<(std::ostream &out, const Driver &driver);

/* Variables that are set, and options read again, for as long as this exists. */
class Environment
{
  public:
    explicit Environment(const Variables &variables);
    Environment(const Environment &) = delete;
    Environment &operator=(const Environment &) = delete;
    ~Environment();

  private:
    std::vector<std::string> names_;
};

/* Dolphin's library is the stand-in at this path, of whose checks `percent` fail. */
Variables standin_for_sisci(const std::string &path, int percent, const Variables &more);

/* A folder for the stand-in's files, which has to be empty when it goes. */
class Folder
{
  public:
    Folder();
    Folder(const Folder &) = delete;
    Folder &operator=(const Folder &) = delete;
    ~Folder();
    std::string path;
    std::vector<std::string> files() const;
};

/* What all nodes of a run share, beside segments. */
struct Meeting;

/* One node with a segment of its own, connected to those of all nodes, itself too. */
class Node
{
  public:
    Node(const Driver &driver, int rank, int size, Meeting *meeting);
    Node(const Node &) = delete;
    Node &operator=(const Node &) = delete;
    ~Node();

    /* Make a segment and connect; throws std::string.  The flags in `preset` lines start there. */
    void open(size_t lines, uint32_t preset = 0);
    void close();
    void meet();
    /* Wait until a flag of the own segment is there. */
    void wait(size_t line, uint32_t epoch);
    /* To all nodes: what store(peer) stores has arrived.  Throws. */
    void deliver(const std::function<void(int peer)> &store);
    uint32_t word(size_t line, size_t index) const;

    const int rank, size;
    const collx_seg_ops *const ops;
    collx_net *net = nullptr;
    collx_seg_caps caps = {};
    collx_export *own = nullptr;
    void *local = nullptr;
    std::vector<collx_remote *> remotes; /* [rank] */

  private:
    Meeting *const meeting_;
};

/* What went wrong, "" if nothing: what a body returns or throws, or how its process died. */
std::string run_nodes(const Driver &driver, int size,
                      const std::function<std::string(Node &)> &body);

/* What this process has open: descriptors and mappings of segments. */
std::vector<std::string> open_things();

#endif
