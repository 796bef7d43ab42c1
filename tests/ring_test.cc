/* Where the chunks of Bcasts of two ranks lie in their ring: nothing is overwritten that is still
 * to be read, however the ranks take turns. */
extern "C" {
#include "tests/ring_walk.h"
}

#include <gtest/gtest.h>
#include <random>
#include <vector>

namespace
{

class Ring : public testing::TestWithParam<std::tuple<bool, unsigned>>
{
};

TEST_P(Ring, KeepsWhatIsStillToBeRead)
{
    const auto &[swings, most] = GetParam();
    /* From where on chunks are longer, and from where on a message goes round the ring. */
    const std::vector<size_t> sizes =
        most ? std::vector<size_t>{4097, 8193, 32769, 65537, 262145, 524289, 1100000}
             : std::vector<size_t>{1, 53, 129, 521, 1025, 2049, 4097};

    for (unsigned seed = 1; seed <= 200; seed++) {
        std::mt19937 random(seed);
        std::vector<ring_walk_message> messages;
        for (int i = 0, root = 0; i < 300; i++) {
            /* One is often root several times in a row. */
            root = random() % 3 ? root : !root;
            const size_t size = random() % (sizes.size() - 1);
            messages.push_back({root, sizes[size] + random() % (sizes[size + 1] - sizes[size])});
        }
        /* One of them may be much slower. */
        struct Turns {
            std::mt19937 &random;
            unsigned of_rank_1;
        } turns = {random, static_cast<unsigned>(random() % 9)};
        const char *wrong = ring_walk(
            messages.data(), static_cast<int>(messages.size()), swings, most,
            [](void *context) {
                auto *t = static_cast<Turns *>(context);
                return static_cast<int>(t->random() % 8 < t->of_rank_1);
            },
            &turns);
        ASSERT_EQ(nullptr, wrong) << wrong << ", with seed " << seed;
    }
}

INSTANTIATE_TEST_SUITE_P(All, Ring,
                         testing::Combine(testing::Bool(), testing::Values(0, 8192, 16384)));

} // namespace
