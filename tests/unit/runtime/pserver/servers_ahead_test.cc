// Sharing memory, weights are read while they are made.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <new>
#include <thread>

#include "runtime/collective/fault.h"
#include "runtime/pserver/read_counts.h"
#include "servers_world.h"
#include "stranger.h"

namespace paceline::pserver {
namespace {

constexpr std::size_t kElements = 3000;

WorldSpec spec_of(int workers) {
  WorldSpec spec;
  spec.workers = workers;
  spec.servers = 1;
  spec.elements = kElements;
  spec.slice_bytes = std::size_t{1} << 20;  // in one: the slab has the order of the vector
  spec.optimizer = sgd(1);
  return spec;
}

// The server of a world of one worker, spoken for by the test.
class MakingServer {
 public:
  explicit MakingServer(ServersWorld& world) : world_(world) {
    const auto memory = world.arena(1).allocate(kElements * sizeof(float));
    const auto count = world.arena(1).allocate(sizeof(MadeCount));
    if (!memory.ok() || !count.ok()) {
      ADD_FAILURE() << "no memory";
      return;
    }
    slab_ = std::span<float>(reinterpret_cast<float*>(memory->data()), kElements);
    made_ = new (count->data()) MadeCount(0);
    begin_ = world.arena(1).offset_of(memory->data());
    counts_at_ = world.arena(1).offset_of(count->data());
  }
  std::span<float> slab() { return slab_; }
  MadeCount& made() { return *made_; }
  std::uint64_t begin() const { return begin_; }
  std::uint64_t counts_at() const { return counts_at_; }
  void say_turn() {
    TurnResult turn;
    turn.unit = 0;
    turn.version = 1;
    Buffer message;
    encode(turn, message);
    Stranger::say_as_server(world_, 1, 0, {.kind = FrameKind::kTurn, .number = 1}, message);
  }
  void say_coming(std::uint64_t begin, std::uint64_t counts_at) {
    Buffer message;
    encode(ComingMessage{counts_at}, message);
    Stranger::say_as_server(world_, 1, 0, {.kind = FrameKind::kComing, .number = 1, .begin = begin}, message);
  }
  void say_weights() {
    Stranger::say_as_server(world_, 1, 0, {.kind = FrameKind::kWeights, .number = 1, .begin = begin_}, {});
  }

 private:
  ServersWorld& world_;
  std::span<float> slab_;
  MadeCount* made_ = nullptr;
  std::uint64_t begin_ = 0, counts_at_ = 0;
};

TEST(ServersAhead, AWorkerReadsWhatIsMadeAndTheRestWhenAllIs) {
  WorldSpec spec = spec_of(1);
  spec.strangers = {1};
  ServersWorld world(spec);
  MakingServer server(world);
  constexpr std::size_t kMade = 1000;
  std::fill_n(server.slab().begin(), kMade, 2.0F);
  std::fill(server.slab().begin() + kMade, server.slab().end(), -1.0F);  // an older version's
  server.made() = kMade;
  server.say_turn();
  server.say_coming(server.begin(), server.counts_at());
  absl::StatusOr<TurnResult> turn;
  {
    const std::jthread waits([&] { turn = world.client(0).wait_turn(world.deadline()); });
    const Deadline limit = world.deadline();
    while (world.client(0).counters().floats_ahead < kMade && !limit.expired(world.clock().now())) {
      std::this_thread::yield();
    }
    EXPECT_EQ(world.client(0).counters().floats_ahead, kMade);
    std::fill(server.slab().begin() + kMade, server.slab().end(), 3.0F);
    server.say_weights();
  }
  ASSERT_TRUE(turn.ok()) << turn.status();
  EXPECT_EQ(turn->version, 1);
  EXPECT_EQ(world.client(0).counters().bytes_received, kElements * sizeof(float));
  Floats expected(kElements, 2.0F);
  std::fill(expected.begin() + kMade, expected.end(), 3.0F);
  EXPECT_TRUE(std::ranges::equal(world.weights(0), expected));
}

// Of a server that counts more than it has, no more is read than it can have.
TEST(ServersAhead, ACountIsNotBelieved) {
  WorldSpec spec = spec_of(1);
  spec.strangers = {1};
  ServersWorld world(spec);
  MakingServer server(world);
  std::fill(server.slab().begin(), server.slab().end(), 2.0F);
  server.made() = ~std::uint64_t{0};
  server.say_turn();
  server.say_coming(server.begin(), server.counts_at());
  server.say_weights();
  world.turn(0);
  EXPECT_LE(world.client(0).counters().floats_ahead, kElements);
  EXPECT_TRUE(std::ranges::equal(world.weights(0), Floats(kElements, 2.0F)));
}

TEST(ServersAhead, InvalidComingIsTheServersFault) {
  struct Case {
    std::uint64_t begin, counts_at;
    const char* said;
  };
  const std::uint64_t size = spec_of(1).arena_bytes;
  for (const Case& c :
       {Case{0, size, "says that it counts at"}, Case{0, size - 4, "says that it counts at"},
        Case{0, 4, "says that it counts at"}, Case{size, 0, "floats lie at"}, Case{2, 0, "floats lie at"}}) {
    SCOPED_TRACE(::testing::PrintToString(c.begin) + ", " + ::testing::PrintToString(c.counts_at));
    WorldSpec spec = spec_of(1);
    spec.strangers = {1};
    ServersWorld world(spec);
    MakingServer server(world);
    server.say_coming(c.begin, c.counts_at);
    const absl::Status ended = world.client(0).wait_turn(world.deadline()).status();
    expect_fault(ended, absl::StatusCode::kInvalidArgument, 1, c.said);
  }
}

// Twice, or over connections that share no memory.
TEST(ServersAhead, UnexpectedComingIsTheServersFault) {
  for (const Medium medium : {Medium::kSharedMemory, Medium::kTcp}) {
    WorldSpec spec = spec_of(1);
    spec.medium = medium;
    spec.strangers = {1};
    ServersWorld world(spec);
    MakingServer server(world);
    server.say_coming(server.begin(), server.counts_at());
    if (medium == Medium::kSharedMemory) server.say_coming(server.begin(), server.counts_at());
    const absl::Status ended = world.client(0).wait_turn(world.deadline()).status();
    expect_fault(ended, absl::StatusCode::kInvalidArgument, 1, "Coming");
  }
}

// What a server says of an update, in that order, to one whose turn follows.
TEST(ServersAhead, AServerSaysWhatIsComingBeforeItIsThere) {
  WorldSpec spec = spec_of(2);
  spec.strangers = {1};
  spec.total_steps = 1;
  ServersWorld world(spec);
  Stranger other(world, spec);
  ASSERT_TRUE(world.begin(Floats(kElements, 4)).ok());
  other.commit(other.wait_for_turn());
  ASSERT_TRUE(world.client(0).wait_turn(world.deadline()).ok());
  ASSERT_TRUE(world.push_same(0, 1.0F).ok());
  FrameHeader coming, weights;
  ComingMessage said;
  Buffer payload;
  ASSERT_NO_FATAL_FAILURE(coming = other.hear(FrameKind::kComing, payload));
  ASSERT_TRUE(decode(payload, said).ok());
  ASSERT_NO_FATAL_FAILURE(weights = other.hear(FrameKind::kWeights, payload));
  EXPECT_EQ(coming.number, 1);
  EXPECT_EQ(weights.number, 1);
  EXPECT_EQ(coming.begin, weights.begin);
  EXPECT_LT(said.made, spec.arena_bytes);
  other.send({.kind = FrameKind::kLeave}, {});
  ASSERT_TRUE(world.client(0).wait_turn(world.deadline()).ok());
  world.end_well();
}

}  // namespace
}  // namespace paceline::pserver
