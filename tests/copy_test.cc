/* Copies into and out of shared memory arrive, whichever way they go. */
extern "C" {
#include "algorithms/within/copy.h"
#include "base/options.h"
#include "tests/ring_view.h"
}

#include <algorithm>
#include <functional>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

namespace
{

using Move = std::function<void(void *to, const void *from, size_t bytes)>;

/* Returns whether `bytes` bytes at these offsets from an aligned address arrive, and nothing else.
 */
bool arrives(const Move &move, size_t bytes, size_t to, size_t from)
{
    std::vector<unsigned char> source(bytes + from + 64), target(bytes + to + 64, 0xee);

    for (size_t i = 0; i < source.size(); i++)
        source[i] = static_cast<unsigned char>(i * 31 + bytes);
    move(&target[to], &source[from], bytes);
    for (size_t i = 0; i < target.size(); i++)
        if (target[i] != (i >= to && i < to + bytes ? source[i - to + from] : 0xee))
            return false;
    return true;
}

bool arrives(collx_copier *copier, size_t bytes, size_t to, size_t from, bool out = false)
{
    return arrives(
        [copier, out](void *target, const void *source, size_t count) {
            if (out)
                collx_copy_out(copier, target, source, count);
            else
                collx_copy_in(copier, target, source, count);
        },
        bytes, to, from);
}

void set_option(const char *option, const char *value)
{
    char why[100];

    ASSERT_EQ(0, collx_option_set(option, value, why, sizeof why)) << why;
}

/* Of a CPU that is said to gain by returned lines, or not to, and by whole ones. */
collx_copier new_copier(const char *returns = "auto", const char *whole_lines = "off")
{
    collx_copier copier;

    set_option("return", returns);
    set_option("whole_lines", whole_lines);
    collx_copier_init(&copier);
    set_option("return", "auto");
    set_option("whole_lines", "auto");
    return copier;
}

const size_t sizes[] = {0,    1,    8,    15,   16,   17,   31,   32,    33,    63,    64,   100,
                        200,  300,  500,  700,  1023, 1024, 1025, 1039,  1087,  1088,  2047, 2048,
                        4095, 4096, 4097, 4159, 4160, 8191, 8192, 16384, 16447, 100001};

TEST(Copy, Plain)
{
    for (const char *whole_lines : {"off", "on"})
        for (size_t bytes : sizes)
            for (size_t to : {0, 1, 8, 63})
                for (size_t from : {0, 3}) {
                    collx_copier copier = new_copier("auto", whole_lines);
                    EXPECT_TRUE(arrives(&copier, bytes, to, from)) << bytes << " " << to;
                }
}

TEST(Copy, OfShortMessages)
{
    for (size_t bytes = 0; bytes <= 128; bytes++)
        for (size_t to : {0, 1, 8, 63})
            for (size_t from : {0, 3})
                EXPECT_TRUE(arrives(ring_view_copy, bytes, to, from)) << bytes << " " << to;
}

/* A version that this CPU cannot run is the next one. */
const char *const versions[] = {"avx512", "avx2", "c", "auto"};

TEST(Copy, Out)
{
    for (const char *version : versions)
        for (const char *whole_lines : {"off", "on"}) {
            set_option("kernels", version);
            collx_copier copier = new_copier("auto", whole_lines);
            for (size_t bytes : sizes)
                for (size_t to : {0, 1, 8, 63})
                    for (size_t from : {0, 3})
                        EXPECT_TRUE(arrives(&copier, bytes, to, from, true)) << version << bytes;
        }
}

TEST(Copy, OutPastTheCaches)
{
    for (const char *version : versions) {
        set_option("kernels", version);
        collx_copier copier = new_copier();
        collx_copy_out_past(&copier);
        for (size_t bytes : sizes)
            for (size_t to : {0, 1, 8, 63})
                for (size_t from : {0, 3})
                    EXPECT_TRUE(arrives(&copier, bytes, to, from, true)) << version << bytes;
        collx_copy_out_past_end(&copier);
        EXPECT_FALSE(collx_copy_out_is_past(&copier));
    }
}

TEST(Copy, PastTheCaches)
{
    for (const char *version : versions) {
        set_option("kernels", version);
        for (size_t bytes : sizes)
            for (size_t to : {0, 1, 8, 63})
                for (size_t from : {0, 3}) {
                    collx_copier copier = new_copier();
                    copier.streaming = 1;
                    EXPECT_TRUE(arrives(&copier, bytes, to, from)) << version << bytes << " " << to;
                    EXPECT_EQ(bytes < 4096, copier.streaming == 1);
                }
    }
}

/* Then it does not matter how far away those are who have the lines: nothing is timed. */
TEST(Copy, WholeLinesNeverPastTheCaches)
{
    collx_copier copier = new_copier("auto", "on");

    if (!copier.ways.whole_lines)
        GTEST_SKIP() << "this build copies no other way";
    copier.streaming = 1;
    for (size_t bytes : {4096, 8191, 8192, 100001}) {
        EXPECT_TRUE(arrives(&copier, bytes, 0, 0)) << bytes;
        EXPECT_EQ(bytes < 8192, collx_copy_fetches(&copier, bytes)) << bytes;
        EXPECT_EQ(bytes < 8192, collx_copy_claims(&copier, 16384, bytes)) << bytes;
    }
    EXPECT_EQ(1u, copier.streaming);
    EXPECT_EQ(0u, copier.copies);
}

TEST(Copy, WholeLinesWhereAskedFor)
{
    EXPECT_FALSE(new_copier("auto", "off").ways.whole_lines);
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
    EXPECT_TRUE(new_copier("auto", "on").ways.whole_lines);
#endif
}

/* What has been returned is written with other stores. */
TEST(Copy, ToReturnedLines)
{
    for (size_t bytes : sizes)
        for (size_t to : {0, 1, 8, 63})
            for (size_t from : {0, 3}) {
                collx_copier copier = new_copier();
                copier.returned = true;
                EXPECT_TRUE(arrives(&copier, bytes, to, from)) << bytes << " " << to;
            }
}

TEST(Copy, ReturnsLeaveWhatIsThere)
{
    std::vector<unsigned char> memory(10000), same;

    for (size_t i = 0; i < memory.size(); i++)
        memory[i] = static_cast<unsigned char>(i * 31);
    same = memory;
    for (size_t bytes : sizes)
        for (size_t at : {0, 1, 63}) {
            collx_copier copier = new_copier("on");
            if (at + bytes > memory.size())
                continue;
            collx_copy_return(&copier, &memory[at], bytes); /* a try */
            copier.reads = 1;
            copier.returns = true;
            collx_copy_return(&copier, &memory[at], bytes);
            EXPECT_EQ(bytes < 1024, copier.reads == 1);
        }
    EXPECT_EQ(same, memory);
}

/* Where it is not cheap it is tried again, but more and more rarely. */
TEST(Copy, FindsOutWhetherToReturn)
{
    std::vector<unsigned char> memory(8192);
    collx_copier copier = new_copier("on");
    unsigned patience = copier.patience;

    for (int tries = 0; tries < 20; tries++) {
        while (copier.reads)
            collx_copy_return(&copier, memory.data(), memory.size());
        collx_copy_return(&copier, memory.data(), memory.size());
        EXPECT_GT(copier.reads, 0u);
        EXPECT_EQ(copier.returns ? 64u : patience, copier.reads);
        EXPECT_EQ(copier.returns ? 16u : std::min(4096u, 2 * patience), copier.patience);
        patience = copier.patience;
    }
}

TEST(Copy, DoesNotReturnWhereItIsNoGain)
{
    std::vector<unsigned char> memory(8192);
    collx_copier copier = new_copier("off");

    for (int i = 0; i < 2; i++)
        collx_copy_return(&copier, memory.data(), memory.size());
    EXPECT_FALSE(copier.returns);
    EXPECT_EQ(0u, copier.reads);
}

TEST(Copy, RootHearsThatLinesAreReturned)
{
    for (size_t bytes : {4097, 8192, 20000})
        for (bool returns : {false, true})
            EXPECT_EQ(returns, ring_view_hears(bytes, returns)) << bytes;
}

/* The shortest go a long way; of others a whole round has room in a CPU's first cache. */
TEST(Copy, RootLooksAtOthersOnceARound)
{
    for (size_t bytes : {1, 52, 53, 128})
        EXPECT_EQ(64, ring_view_round(bytes)) << bytes;
    for (size_t bytes : {129, 312, 313, 1024, 1025, 4096})
        EXPECT_EQ(16, ring_view_round(bytes)) << bytes;
}

/* Not worth it: more than a cache has room for, what goes past it, and what comes fast. */
TEST(Copy, ClaimsLittle)
{
    collx_copier copier = new_copier();

    EXPECT_TRUE(collx_copy_claims(&copier, 32768, 8192));
    EXPECT_FALSE(collx_copy_claims(&copier, 32769, 8192));
    copier.streaming = 1;
    EXPECT_FALSE(collx_copy_claims(&copier, 8192, 4096));
    EXPECT_TRUE(collx_copy_claims(&copier, 4095, 4095));
    copier.returned = true;
    copier.streaming = 0;
    EXPECT_TRUE(collx_copy_claims(&copier, 4096, 4096));
    EXPECT_FALSE(collx_copy_claims(&copier, 4097, 4097));
}

/* All lines of the next message that the root writes to, and none in a crowd. */
TEST(Copy, RootClaimsWhatItWritesNext)
{
    for (bool swings : {false, true})
        for (int apart : swings ? std::vector<int>{1} : std::vector<int>{1, 2, 5}) {
            EXPECT_EQ(1, ring_view_claims(8, apart, false, swings)) << apart;
            EXPECT_EQ(1, ring_view_claims(52, apart, false, swings)) << apart;
            EXPECT_EQ(2, ring_view_claims(53, apart, false, swings)) << apart;
            EXPECT_EQ(5, ring_view_claims(260, apart, false, swings)) << apart;
            EXPECT_EQ(6, ring_view_claims(312, apart, false, swings)) << apart;
            EXPECT_EQ(1, ring_view_claims(313, apart, false, swings)) << apart;
            EXPECT_EQ(0, ring_view_claims(8, apart, true, swings)) << apart;
        }
}

/* When the other one was root in between, a ring that swings takes this one to where it has read.
 */
TEST(Copy, RootClaimsNothingWhereItReadsFirst)
{
    for (int apart : {2, 3, 5})
        EXPECT_EQ(0, ring_view_claims(260, apart, false, true)) << apart;
}

/* Not for longer messages while the other one is still at those before. */
TEST(Copy, RootAheadOfOthersClaimsOnlyForShortMessages)
{
    for (int more : {0, 1, 3}) {
        EXPECT_EQ(1, ring_view_claims_ahead(8, more, true)) << more;
        EXPECT_EQ(1, ring_view_claims_ahead(1024, more, true)) << more;
        EXPECT_EQ(more ? 0 : 1, ring_view_claims_ahead(1025, more, true)) << more;
        EXPECT_EQ(more ? 0 : 1, ring_view_claims_ahead(4096, more, true)) << more;
        EXPECT_EQ(more ? 0 : 2, ring_view_claims_ahead(8192, more, false)) << more;
        EXPECT_EQ(more ? 0 : 4, ring_view_claims_ahead(32768, more, false)) << more;
        EXPECT_EQ(0, ring_view_claims_ahead(32769, more, false)) << more;
    }
}

/* The slots, and whether rank 1 has returned what it has read there: of what comes after a message
 * of its own it has not, as it writes there next itself. */
TEST(Copy, RingSwingsToWhereTheRootHasRead)
{
    const int roots[] = {0, 0, 1, 1, 0, 1, 0, 0, 1};
    const int on[] = {0, 1, 1, 0, 0, 0, 0, 1, 1};
    const bool returned[] = {true, true, false, false, false, false, false, true, false};
    constexpr int count = std::size(roots);

    for (size_t bytes : {8, 4096, 8192, 20000, 65536, 100000}) {
        ring_view_message messages[count];
        ring_view_swing(roots, count, bytes, false, messages);
        const unsigned one = messages[1].slot;
        EXPECT_EQ(0u, messages[0].slot);
        EXPECT_NE(0u, one);
        for (int i = 0; i < count; i++) {
            EXPECT_EQ(on[i] * one, messages[i].slot) << i << " of " << bytes;
            EXPECT_EQ(returned[i] && bytes >= 1024, messages[i].returned) << i << " of " << bytes;
        }
    }
}

/* A root that writes where it has read has all lines, and gains nothing by numbers. */
TEST(Copy, RingNumbersLinesUnlessItHasSwung)
{
    const int roots[] = {0, 0, 1, 1, 1, 0, 1, 0, 0};
    constexpr int count = std::size(roots);

    for (size_t bytes : {52, 53, 260, 312, 313}) {
        ring_view_message messages[count];
        ring_view_swing(roots, count, bytes, true, messages);
        for (int i = 0; i < count; i++)
            EXPECT_EQ(i > 0 && roots[i] == roots[i - 1] && bytes > 52 && bytes <= 312,
                      messages[i].lined)
                << i << " of " << bytes;
    }
}

/* Chunks grow with a message, and lie in one piece each, whatever was there before. */
TEST(Copy, RingCutsLongMessagesIntoLongChunks)
{
    const struct {
        unsigned most;
        size_t bytes, chunk;
    } cuts[] = {
        {8192, 4097, 4096},     {8192, 8192, 4096},       {8192, 8193, 8192},
        {8192, 262144, 8192},   {8192, 262145, 32768},    {8192, 16 << 20, 32768},
        {16384, 32768, 8192},   {16384, 32769, 16384},    {16384, 524288, 16384},
        {16384, 524289, 65536}, {16384, 16777217, 65536},
    };

    for (const auto &cut : cuts)
        for (size_t before : {1, 8192, 8193, 20000, 100000, 250000, 300000, 600000}) {
            const ring_view_pieces got = ring_view_cut(cut.most, before, cut.bytes);
            EXPECT_EQ(cut.chunk, got.bytes) << cut.bytes << " after " << before;
            EXPECT_EQ((cut.bytes + cut.chunk - 1) / cut.chunk, got.chunks) << cut.bytes;
            EXPECT_EQ(cut.chunk <= 8192 ? 1 : cut.chunk / 8192, got.slots) << cut.bytes;
            EXPECT_EQ(0u, got.first % got.slots) << cut.bytes << " after " << before;
        }
}

TEST(Copy, ClaimsLeaveWhatIsThere)
{
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    auto *memory = static_cast<unsigned char *>(
        mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));

    ASSERT_NE(MAP_FAILED, memory);
    for (size_t i = 0; i < page; i++)
        memory[i] = static_cast<unsigned char>(i * 31);
    /* What is not there, or not ours to write, is no harm either. */
    ASSERT_EQ(0, mprotect(memory, page, PROT_READ));
    ASSERT_EQ(0, mprotect(memory + page, page, PROT_NONE));
    for (size_t bytes : {size_t{0}, size_t{1}, size_t{64}, page, 2 * page})
        for (size_t at : {0, 8, 63})
            collx_copy_claim(memory + at, bytes);
    for (size_t i = 0; i < page; i++)
        ASSERT_EQ(static_cast<unsigned char>(i * 31), memory[i]) << i;
    munmap(memory, 2 * page);
}

/* When it has gone past the caches for long it times a plain copy, and goes on if that was slow. */
TEST(Copy, TriesPlainStoresAgain)
{
    for (bool returned : {false, true}) {
        collx_copier copier = new_copier();

        copier.returned = returned;
        copier.slow = 3;
        copier.streaming = 2;
        for (int i = 0; i < 2; i++)
            EXPECT_TRUE(arrives(&copier, 8192, 0, 0));
        EXPECT_EQ(0u, copier.streaming);
        EXPECT_TRUE(arrives(&copier, 8192, 0, 0));
        EXPECT_EQ(copier.streaming ? 3u : 0u, copier.slow);
        EXPECT_EQ(0u, copier.copies);
    }
}

TEST(Copy, StaysWhereItIsUntilSeveralWereSlow)
{
    collx_copier copier = new_copier();

    for (unsigned i = 1; i < 24; i++) {
        EXPECT_TRUE(arrives(&copier, 4096, 0, 0));
        EXPECT_EQ(0u, copier.streaming);
        EXPECT_EQ(i, copier.copies);
    }
}

} // namespace
