#include "tests/sisci/map.h"

extern "C" {
#include "base/clock.h"
}

#include <algorithm>
#include <sched.h>

namespace standin
{

Map::Map(const Settings &settings, const File &file, size_t offset, size_t size, unsigned number)
    : settings_(settings), file_(file), target_(file.data() + offset), words_(size / 4)
{
    std::seed_seq seed = {settings.seed, settings.node, number};
    random.seed(seed);
    stored_ = std::make_unique<uint32_t[]>(words_);
    shadow_ = std::make_unique<uint32_t[]>(words_);
    for (size_t i = 0; i < words_; i++) {
        uint32_t *word = reinterpret_cast<uint32_t *>(target_) + i;
        stored_[i] = shadow_[i] = __atomic_load_n(word, __ATOMIC_RELAXED);
    }
}

void *Map::address()
{
    return stored_.get();
}

bool Map::is_there() const
{
    return file_.is_there();
}

/* At each check all of the map is compared, most of it in vain, and most of the time of a sanitizer
 * goes into that.  What has changed is read again where sanitizers look. */
__attribute__((no_sanitize_address, no_sanitize_thread)) static bool
is_same(const uint32_t *one, const uint32_t *other, size_t count)
{
    uint32_t different = 0;

    for (size_t i = 0; i < count; i++)
        different |= one[i] ^ other[i];
    return !different;
}

/* Only words that have changed: others write into the same segment. */
std::vector<Map::Packet> Map::collect()
{
    const size_t per_line = settings_.line / 4;
    std::vector<Packet> packets;

    for (size_t start = 0; start < words_; start += per_line) {
        size_t count = std::min(per_line, words_ - start);
        if (is_same(&stored_[start], &shadow_[start], count))
            continue;
        Packet packet = {start, {}, {}, 0};
        for (size_t i = start; i < start + count; i++) {
            packet.words.push_back(stored_[i]);
            packet.changed.push_back(stored_[i] != shadow_[i]);
        }
        packets.push_back(std::move(packet));
    }
    return packets;
}

/* Upwards; the release, here as on the real bus, is what makes a line's last word come last. */
void Map::deliver(const Packet &packet)
{
    uint32_t *to = reinterpret_cast<uint32_t *>(target_) + packet.offset;

    for (size_t i = 0; i < packet.words.size(); i++)
        if (packet.changed[i])
            __atomic_store_n(to + i, packet.words[i], __ATOMIC_RELEASE);
}

void Map::send(Counts &counts)
{
    std::vector<Packet> packets = collect();
    bool failing = !packets.empty() && happens(random, settings_.fail);
    bool losing = failing && happens(random, settings_.lose);
    bool all_lost = broken || !file_.is_there();

    sent = sent || !packets.empty();
    std::shuffle(packets.begin(), packets.end(), random);
    for (size_t i = 0; i < packets.size(); i++) {
        Packet &packet = packets[i];
        uint32_t *stored = &stored_[packet.offset], *shadow = &shadow_[packet.offset];
        size_t count = packet.words.size();

        spend(settings_.line_ns);
        counts.lines++;
        if (all_lost || (losing && (i == 0 || happens(random, 50)))) {
            /* As if it had never been stored, so that only storing it again will send it. */
            std::copy(shadow, shadow + count, stored);
            counts.lost_lines++;
            continue;
        }
        std::copy(stored, stored + count, shadow);
        bool late = happens(random, settings_.late);
        if (late || settings_.latency_ns) {
            packet.due = late ? UINT64_MAX : collx_clock_ns() + settings_.latency_ns;
            counts.late_lines += late;
            flying_.push_back(std::move(packet));
        } else {
            deliver(packet);
        }
    }
    faults += failing || (all_lost && !packets.empty());
}

void Map::complete()
{
    std::shuffle(flying_.begin(), flying_.end(), random);
    for (const Packet &packet : flying_) {
        if (packet.due == UINT64_MAX)
            sched_yield(); /* the other side may look now: without this line, but with others */
        else
            while (collx_clock_ns() < packet.due)
                ;
        deliver(packet);
    }
    flying_.clear();
}

} // namespace standin
