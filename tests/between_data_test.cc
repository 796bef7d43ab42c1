/* Bcast and Allreduce between nodes, without MPI: over all that there is, in any layout, as
 * processes and as threads, with ranks that are late, and sizes where something begins or ends. */
#include "tests/ways.h"

extern "C" {
#include "algorithms/between/fanout.h"
#include "base/options.h"
extern const collx_algorithm collx_bcast_nx, collx_bcast_hsb;
extern const collx_algorithm collx_allreduce_nx, collx_allreduce_hsb;
}

#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <unistd.h>

namespace
{

const Form bcast_nx_2 = {"nx_2", &collx_bcast_nx, {2}};

const std::vector<Form> bcasts =
    forms_of(COLLX_BCAST, {bcast_nx_2, {"hsb_2", &collx_bcast_hsb, {2}}});

const std::vector<Form> allreduces =
    forms_of(COLLX_ALLREDUCE, {{"nx_2", &collx_allreduce_nx, {2}},
                               {"nx_3", &collx_allreduce_nx, {3}},
                               {"hsb_2_3", &collx_allreduce_hsb, {2, 3}}});

/* The node of each rank. */
const std::vector<int> layouts[] = {
    {0, 0},
    {0, 1},
    {0, 0, 1},
    {0, 1, 2},
    {0, 1, 0, 1},
    {0, 0, 0, 1, 2},
    {0, 1, 2, 3, 4, 5},
    {0, 1, 2, 0, 1, 2, 0},
    {0, 1, 2, 3, 4, 5, 6, 7},
    {0, 1, 1, 2, 2, 2, 3, 3, 4},
};

class BcastData : public OnWays
{
};

class AllreduceData : public OnWays
{
};

/* Now and then a rank comes late. */
struct Dice {
    std::minstd_rand roll;
    explicit Dice(int rank) : roll(static_cast<unsigned>(rank + 1))
    {
    }
    void dawdle()
    {
        if (roll() % 8 == 0)
            usleep(static_cast<useconds_t>(roll() % 300));
    }
};

/* A line's data, a slot of a stream, a piece, a ring: what is just below them, and just above. */
const size_t bcast_sizes[] = {0,    1,    4,     59,    60,    61,    124,   125,   1000,
                              7680, 7681, 15872, 15873, 16384, 16385, 65536, 65537, 100000};

const Pattern pattern(100000);

TEST_P(BcastData, GetsToAllFromAnyRoot)
{
    EXPECT_EQ("", run([&](Rank &self) {
                  Dice dice(self.team.rank);
                  int call = 0;

                  for (size_t bytes : bcast_sizes)
                      for (int root = 0; root < self.team.size; root++)
                          for (bool contiguous : {true, false}) {
                              /* Of the long ones one each, another one each time. */
                              if (bytes > 2000 &&
                                  (bytes + 1) % static_cast<size_t>(2 * self.team.size) !=
                                      static_cast<size_t>(2 * root + contiguous))
                                  continue;
                              std::vector<unsigned char> data(bytes + 1);
                              const size_t whole = contiguous ? bytes : bytes / 4 * 4;
                              if (self.team.rank == root)
                                  memcpy(data.data(), pattern.of(call), bytes);
                              dice.dawdle();
                              if (self.bcast(data.data(), bytes, root, contiguous))
                                  return std::string("an error");
                              if (std::string wrong = pattern.compare(data.data(), whole, call);
                                  !wrong.empty())
                                  return wrong + ", from " + std::to_string(root);
                              call++;
                          }
                  return std::string();
              }));
}

INSTANTIATE_TEST_SUITE_P(All, BcastData, testing::ValuesIn(cases(layouts, bcasts, 11)), name_of);

Affine affine_of(int64_t i, int rank, int call)
{
    return {static_cast<uint64_t>(2 * i + 3 + 4 * rank), static_cast<uint64_t>(i * call + rank)};
}

/* Whether each came out as it has to, in the order of the ranks. */
std::string try_compose(Rank &self, int64_t count, int call)
{
    std::vector<Affine> own(static_cast<size_t>(count)), result(static_cast<size_t>(count));
    const bool in_place = call & 1;

    for (int64_t i = 0; i < count; i++)
        own[static_cast<size_t>(i)] = affine_of(i, self.team.rank, call);
    if (in_place)
        result = own;
    if (self.compose(in_place ? result.data() : own.data(), result.data(), count))
        return "an error";
    for (int64_t i = 0; i < count; i++) {
        Affine whole = affine_of(i, 0, call);
        for (int rank = 1; rank < self.team.size; rank++)
            whole = after(whole, affine_of(i, rank, call));
        const Affine &got = result[static_cast<size_t>(i)];
        if (got.a != whole.a || got.b != whole.b)
            return "wrong: element " + std::to_string(i) + " of " + std::to_string(count) +
                   " that do not commute";
    }
    return "";
}

std::string try_sum(Rank &self, int64_t count, int call)
{
    std::vector<int64_t> own(static_cast<size_t>(count)), result(static_cast<size_t>(count));
    const bool in_place = call & 1;

    for (int64_t i = 0; i < count; i++)
        own[static_cast<size_t>(i)] = i * call + self.team.rank;
    if (in_place)
        result = own;
    if (self.sum(in_place ? result.data() : own.data(), result.data(), count))
        return "an error";
    for (int64_t i = 0; i < count; i++)
        if (result[static_cast<size_t>(i)] !=
            i * call * self.team.size + self.team.size * (self.team.size - 1) / 2)
            return "wrong: element " + std::to_string(i) + " of " + std::to_string(count);
    return "";
}

TEST_P(AllreduceData, CombinesInRankOrder)
{
    EXPECT_EQ("", run([&](Rank &self) {
                  Dice dice(self.team.rank);
                  std::string wrong;
                  /* What all contributions go to one leader for, and chunks of what they do not. */
                  const int64_t small = 65536 / 8 / self.team.size;
                  int call = 0;

                  /* What is in place in one round is not in the next. */
                  for (int round = 0; round < (slower > 1 ? 1 : 2); round++)
                      for (int64_t count : {int64_t(0), int64_t(1), int64_t(2), int64_t(7),
                                            int64_t(8), int64_t(100), small, small + 1,
                                            int64_t(4096), int64_t(4097), int64_t(9001)}) {
                          dice.dawdle();
                          if (wrong.empty())
                              wrong = try_sum(self, count, ++call);
                          if (wrong.empty())
                              wrong = try_compose(self, count / 2, call);
                      }
                  return wrong;
              }));
}

INSTANTIATE_TEST_SUITE_P(All, AllreduceData, testing::ValuesIn(cases(layouts, allreduces, 11)),
                         name_of);

/* Calls follow each other without a pause, from roots that change: nobody overtakes. */
TEST(BetweenData, ManyShortOnes)
{
    for (const Way &way : {Way{"shm", COLLX_OVER_SHM, {}}, sisci("sisci", 10)}) {
        Folder folder;
        Environment environment(way.in(folder));
        collx_args args = args_of(bcast_nx_2, way.over);
        EXPECT_EQ("", run_team(bcast_nx_2.algorithm, 5, Ranks::processes, true,
                               [](Rank &self) {
                                   Dice dice(self.team.rank);
                                   for (int call = 0; call < 1500; call++) {
                                       const int root = call * 7 / 3 % self.team.size;
                                       int value = self.team.rank == root ? call : -1;
                                       if (call % 16 == 0)
                                           dice.dawdle();
                                       if (self.bcast(&value, sizeof value, root) || value != call)
                                           return "call " + std::to_string(call);
                                   }
                                   return std::string();
                               },
                               &args, nullptr, {0, 1, 0, 1, 2}))
            << way.name;
    }
}

/* An algorithm that is streams alone, whose numbers are about to wrap around, or to come to where
 * whole slots are written. */
uint32_t first_number;

struct Streams {
    collx_crossroads crossroads;
    std::vector<collx_message> messages;
};

int streams_attach(collx_team *team, const collx_args *args, void *, collx_slot *slot)
{
    auto *streams = new Streams;

    slot->state = streams;
    slot->run = nullptr;
    return collx_crossroads_init_messages(&streams->crossroads, team, args->value[0],
                                          2 * team->size);
}

/* Each node has an area to write to, of two lines and four slots: where that of `node` begins. */
size_t area_of(int node, const collx_seg_streams &streams)
{
    return static_cast<size_t>(node) * (2 + 4 * streams.lines);
}

int streams_connect(collx_team *team, collx_slot *slot, char *why, size_t size)
{
    collx_crossroads &crossroads = static_cast<Streams *>(slot->state)->crossroads;
    collx_seg_streams &streams = crossroads.streams;
    std::vector<int> all(static_cast<size_t>(team->size));

    if (int error = collx_crossroads_connect(&crossroads, why, size))
        return error;
    const collx_seg_links &links = crossroads.links;
    auto set = [&](size_t line, uint32_t value) {
        memcpy(static_cast<char *>(links.local) + collx_seg_flag(line, streams.line), &value,
               sizeof value);
    };
    for (int node = 0; node < links.nodes; node++) {
        collx_seg_stream &stream = streams.stream[node];
        stream.sent = stream.arrived = stream.taken = stream.told = first_number;
    }
    for (size_t i = 0; i < links.bytes / streams.line; i++)
        set(i, first_number);
    /* Farewells, the second line of each area, are not numbers. */
    for (int node = 0; node < links.nodes; node++)
        set(area_of(node, streams) + 1, 0);
    return team->ops->gather(team->ctx, &team->rank, all.data(), sizeof(int));
}

void streams_detach(void *state)
{
    auto *streams = static_cast<Streams *>(state);

    collx_crossroads_finish(&streams->crossroads);
    delete streams;
}

/* To all others, and from all others, at once. */
std::string pass_round(Rank &self, size_t bytes, int call)
{
    const int size = self.team.size;
    Streams &streams = *static_cast<Streams *>(self.slot.state);
    std::vector<std::vector<unsigned char>> out, in;

    for (int node = 0; node < size; node++) {
        out.emplace_back(bytes + 1, static_cast<unsigned char>(self.team.rank * 16 + node + call));
        in.emplace_back(bytes + 1);
    }
    streams.messages.clear();
    for (int node = 0; node < size; node++)
        if (node != self.team.rank) {
            streams.messages.push_back({node, true, out[node].data(), bytes});
            streams.messages.push_back({node, false, in[node].data(), bytes});
        }
    if (collx_crossroads_transfer(&streams.crossroads, streams.messages.data(),
                                  static_cast<int>(streams.messages.size()), "Bcast"))
        return "an error";
    for (int node = 0; node < size; node++)
        for (size_t i = 0; i < bytes && node != self.team.rank; i++)
            if (in[node][i] != static_cast<unsigned char>(node * 16 + self.team.rank + call))
                return "wrong: byte " + std::to_string(i) + " in call " + std::to_string(call);
    return "";
}

/* Three nodes with numbers that begin with `first`, by each driver. */
void expect_streams(uint32_t first, const std::function<std::string(Rank &)> &body)
{
    static const collx_param params[] = {COLLX_OVER_PARAM, {}};
    collx_algorithm alone = {};

    alone.params = params;
    alone.attach = streams_attach;
    alone.connect = streams_connect;
    alone.detach = streams_detach;
    first_number = first;
    for (const Way &way :
         {Way{"shm", COLLX_OVER_SHM, {}}, Way{"lent", COLLX_OVER_RMA, {}}, sisci("sisci", 30)}) {
        Folder folder;
        Environment environment(way.in(folder));
        collx_args args = {{way.over}};
        EXPECT_EQ("", run_team(&alone, 3, Ranks::processes, true, body, &args, nullptr, {0, 1, 2}))
            << way.name << " from " << first;
        EXPECT_EQ(folder.files(), std::vector<std::string>());
    }
}

TEST(BetweenData, NumbersOfChunksWrapAround)
{
    for (uint32_t number : {0u, 0u - 30, (1u << 28) - 30, (1u << 31) - 30})
        expect_streams(number, [](Rank &self) {
            std::string wrong;
            for (int call = 0; call < 60 && wrong.empty(); call++)
                wrong = pass_round(self, call % 5 == 3 ? 20000u : call % 7 * 50u, call);
            return wrong;
        });
}

/* Lines that short chunks do not reach, too, have to have numbers of the last 2^31. */
std::string see_recent(Rank &self, uint32_t least)
{
    const collx_seg_streams &streams = static_cast<Streams *>(self.slot.state)->crossroads.streams;

    for (int node = 0; node < self.team.size; node++) {
        const size_t begin = area_of(node, streams), end = area_of(node + 1, streams);
        for (size_t line = begin + 2; line < end && node != self.team.rank; line++) {
            uint32_t number;
            memcpy(&number,
                   static_cast<const char *>(streams.links->local) +
                       collx_seg_flag(line, streams.line),
                   sizeof number);
            if (number < least)
                return "line " + std::to_string(line - begin) + " of " +
                       std::to_string(end - begin) + " has number " + std::to_string(number);
        }
    }
    return "";
}

TEST(BetweenData, WritesWholeSlotsOnceInAWhile)
{
    const uint32_t whole = 13u << 28;

    expect_streams(whole - 10, [](Rank &self) {
        std::string wrong;
        for (int call = 0; call < 40 && wrong.empty(); call++)
            wrong = pass_round(self, 8, call);
        return wrong.empty() ? see_recent(self, whole) : wrong;
    });
}

TEST(BetweenData, ADeadNodeIsAnError)
{
    expect_dead_node_is_error({"nx", &collx_allreduce_nx, {}}, [](Rank &self) {
        int64_t one = 1, sum = 0;
        int error = self.sum(&one, &sum, 1);
        return error ? error : sum != 4;
    });
}

/* A root need not wait until its leader has passed on what it gave, four pieces at most.  What has
 * to be packed goes the same way. */
TEST(BetweenData, ADeadNodeIsAnErrorOfTheRootToo)
{
    for (int root : {0, 1})
        for (size_t bytes : {8u, 100000u})
            for (bool contiguous : {true, false})
                expect_dead_node_is_error(
                    {"nx", &collx_bcast_nx, {}},
                    [=](Rank &self) {
                        std::vector<unsigned char> data(bytes, 7);
                        return self.bcast(data.data(), bytes, root, contiguous);
                    },
                    5);
}

/* Every node is the child of its parent alone, and its parent comes before it. */
TEST(Fanout, IsATree)
{
    for (bool rounds : {false, true})
        for (int nodes = 1; nodes <= 130; nodes++)
            for (int n = 2; n <= nodes + 1; n++) {
                const collx_fanout fanout = {nodes, n, rounds};
                std::vector<int> parent(static_cast<size_t>(nodes), -1);
                for (int node = 0; node < nodes; node++) {
                    std::vector<int> child(static_cast<size_t>(nodes));
                    int count = collx_fanout_children(&fanout, node, child.data());
                    for (int i = 0; i < count; i++) {
                        ASSERT_LT(node, child[i]);
                        ASSERT_LT(child[i], nodes);
                        ASSERT_EQ(parent[child[i]], -1);
                        parent[child[i]] = node;
                    }
                }
                for (int node = 0; node < nodes; node++)
                    ASSERT_EQ(parent[node], collx_fanout_parent(&fanout, node))
                        << node << " of " << nodes << " by " << n;
            }
}

} // namespace
