/* A stand-in for Dolphin's libsisci.so: the same entry points, over files in a folder that the
 * 'nodes', which are processes, share.
 *
 * A remote map is a private copy.  What is stored there goes on its way at a store barrier, a flush
 * or a full check, as changed words in lines; some of it arrives at once, in any order, the rest at
 * a check.  So a program that forgets one of them hangs in a test instead of working by luck.
 *
 * What makes a fuss ends the process: a handle used wrongly, things not undone in reverse order.
 * Set by the environment, read at SCIInitialize; rates are percent:
 */
#ifndef COLLX_TESTS_SISCI_STANDIN_H
#define COLLX_TESTS_SISCI_STANDIN_H

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>

namespace standin
{

struct Settings {
    std::string folder; /* COLLX_TEST_SISCI_FOLDER: shared by all nodes */
    unsigned node;      /* COLLX_TEST_SISCI_NODE: the one that this process is, default 4 */
    unsigned adapters;  /* COLLX_TEST_SISCI_ADAPTERS: how many it has, default 1 */
    size_t line;        /* COLLX_TEST_SISCI_LINE: bytes of a stream buffer, default 64 */
    bool shared;        /* COLLX_TEST_SISCI_SHARED: a check covers all maps of the process */
    unsigned fail;      /* COLLX_TEST_SISCI_FAIL: checks that fail */
    unsigned lose;      /* COLLX_TEST_SISCI_LOSE: of those, where data was lost; else it arrived;
                           default 50 */
    unsigned hard;      /* COLLX_TEST_SISCI_HARD: of those, that answer NOT_RETRIABLE */
    unsigned pending;   /* COLLX_TEST_SISCI_PENDING: of those, that answer PENDING */
    unsigned late;      /* COLLX_TEST_SISCI_LATE: lines that are on their way until a check */
    unsigned starts;    /* COLLX_TEST_SISCI_STARTS: how often a new sequence has to be started
                           until it works, default 1 */
    unsigned seed;      /* COLLX_TEST_SISCI_SEED */
    /* COLLX_TEST_SISCI_LATENCY_NS: from a barrier until a line arrives; a check waits for that */
    uint64_t latency_ns;
    /* COLLX_TEST_SISCI_{LINE,BARRIER,CHECK}_NS: what each changed line, each barrier or flush, and
     * each check costs the caller */
    uint64_t line_ns, barrier_ns, check_ns;
};

Settings settings_from_environment();

/* What has happened in this process; of all threads. */
struct Counts {
    uint64_t lines, lost_lines, late_lines, barriers, checks, failures, hard, pending, starts;
};

/* Exported by the library for tests. */
#define STANDIN_COUNTS "standin_counts"

/* The segment's owner has it locked as long as it lives. */
class File
{
  public:
    /* Throws the SISCI error. */
    static File create(const Settings &settings, unsigned node, unsigned id, size_t size);
    static File connect(const Settings &settings, unsigned node, unsigned id);
    File(File &&other) noexcept;
    File(const File &) = delete;
    File &operator=(const File &) = delete;
    ~File();

    char *data() const;
    size_t size() const;
    void set_available(bool available);
    /* It can be stored into: its owner lives and has not withdrawn it. */
    bool is_there() const;
    void remove();

  private:
    File(std::string path, int fd, void *base, size_t all);
    std::string path_;
    int fd_;
    void *base_;
    size_t all_;
};

/* Whether something with this rate happens now. */
bool happens(std::mt19937 &random, unsigned percent);
void spend(uint64_t ns);

} // namespace standin

#endif
