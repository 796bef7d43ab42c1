/* What is stored into a remote segment of the stand-in, and what becomes of it. */
#ifndef COLLX_TESTS_SISCI_MAP_H
#define COLLX_TESTS_SISCI_MAP_H

#include "tests/sisci/standin.h"

#include <memory>
#include <vector>

namespace standin
{

/* Belongs to one thread at a time, but for what several maps share where a check covers all. */
class Map
{
  public:
    Map(const Settings &settings, const File &file, size_t offset, size_t size, unsigned number);

    void *address();
    /* Send what has changed since the last time. */
    void send(Counts &counts);
    /* Until all that was sent has arrived. */
    void complete();
    bool is_there() const;

    /* Failed transfers up to now.  A check that has seen fewer fails. */
    uint64_t faults = 0;
    /* A connection that has to be restored: what is sent meanwhile is lost. */
    bool broken = false;
    /* Something was sent since the last check. */
    bool sent = false;
    std::mt19937 random;

  private:
    struct Packet {
        size_t offset; /* of the line */
        std::vector<uint32_t> words;
        std::vector<bool> changed;
        uint64_t due;
    };
    std::vector<Packet> collect();
    void deliver(const Packet &packet);

    const Settings &settings_;
    const File &file_;
    char *target_;
    size_t words_;
    std::unique_ptr<uint32_t[]> stored_; /* what the program sees */
    std::unique_ptr<uint32_t[]> shadow_; /* as it was when it was sent last */
    std::vector<Packet> flying_;
};

} // namespace standin

#endif
