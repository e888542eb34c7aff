// What a step costs in round trips and frames.

#include <gtest/gtest.h>

#include "rows_world.h"

namespace paceline::pserver {
namespace {

class ServersRoundTrips : public ServersTest {
 protected:
  // Of one worker, from one turn to the next.
  struct Cost {
    std::uint64_t sent, received, round_trips;
  };
  // work(w) is done in each turn; it ends with the commit.
  void train(WorldSpec spec, const std::function<void(ServersWorld&, int)>& work,
             const std::function<void(const Cost&)>& check) {
    spec.mode.set_synchronization(v1::ParameterServerSpec::SYNCHRONOUS);
    spec.total_steps = 6;
    ServersWorld world(spec, 0);
    std::vector<ClientCounters> before(static_cast<std::size_t>(spec.workers));
    for (Step step = 0; step < spec.total_steps; ++step) {
      for (int w = 0; w < spec.workers; ++w) {
        ASSERT_TRUE(world.client(w).wait_turn(world.deadline()).ok());
        const ClientCounters now = world.client(w).counters();
        const ClientCounters last = std::exchange(before[static_cast<std::size_t>(w)], now);
        if (step == 0) continue;
        check({now.frames_sent - last.frames_sent, now.frames_received - last.frames_received,
               now.round_trips - last.round_trips});
      }
      for (int w = 0; w < spec.workers; ++w) ASSERT_NO_FATAL_FAILURE(work(world, w));
    }
    world.end_well();
  }
};
INSTANTIATE_TEST_SUITE_P(Media, ServersRoundTrips, media(), medium_name);

// Over shared memory the servers read the gradient where it lies: the commit is the request, and the weights
// are the answer. Over TCP the gradient's slices go before it. The first server's answer brings the turn,
// too.
TEST_P(ServersRoundTrips, PushAndPullAreOneWithEachServer) {
  WorldSpec spec = this->spec({.elements = 1000, .slice_bytes = 1024, .ahead_floats = kAheadFloats});
  const std::uint64_t slices = GetParam() == Medium::kTcp ? 4 : 0;
  for (const int servers : {1, 2, 4}) {
    spec.servers = servers;
    const auto m = static_cast<std::uint64_t>(servers);
    train(
        spec, [](ServersWorld& world, int w) { ASSERT_TRUE(world.push_and_commit(w).ok()); },
        [&](const Cost& cost) {
          EXPECT_EQ(cost.round_trips, m);
          EXPECT_EQ(cost.sent, m + slices);
          EXPECT_EQ(cost.received, m + 1);
        });
  }
}

// Of large weights over shared memory each server says one frame more: that they are coming. The first one
// always does; others where they hear of the update and of the turns at once.
TEST_P(ServersRoundTrips, WeightsThatAreComingCostOneFrameMore) {
  WorldSpec spec = this->spec({.ahead_floats = 0});
  const auto m = static_cast<std::uint64_t>(spec.servers);
  const bool shared = GetParam() == Medium::kSharedMemory;
  train(
      spec, [](ServersWorld& world, int w) { ASSERT_TRUE(world.push_and_commit(w).ok()); },
      [&](const Cost& cost) {
        EXPECT_EQ(cost.round_trips, m);
        EXPECT_GE(cost.received, m + 1 + (shared ? 1 : 0));
        EXPECT_LE(cost.received, m + 1 + (shared ? m : 0));
      });
}

// As where the passes go on beside it: ranges from the end to the beginning, as they become final.
TEST_P(ServersRoundTrips, SoTheyAreWhereTheGradientIsPushedInManyParts) {
  constexpr std::size_t kParts = 10;
  const WorldSpec spec = this->spec();
  const std::size_t part = spec.elements / kParts;
  train(
      spec,
      [&](ServersWorld& world, int w) {
        for (std::size_t k = kParts; k > 0; --k) {
          ASSERT_TRUE(world.client(w).push((k - 1) * part, k * part).ok());
        }
        ASSERT_TRUE(world.client(w).commit({}).ok());
      },
      [&](const Cost& cost) { EXPECT_EQ(cost.round_trips, 2u); });
}

// Which rows a unit needs is known when the turn has come.
TEST_P(ServersRoundTrips, RowsArePulledInOneMore) {
  WorldSpec spec = this->spec({.tables = {table_of("a", 4), table_of("b", 1)}, .row_floats = 500});
  WorkerRows rows;
  rows.ids = {{}, {}};
  for (RowId id = 0; id < 50; ++id) {  // on both servers
    for (auto& table : rows.ids) table.push_back(id);
  }
  train(
      spec,
      [&](ServersWorld& world, int w) {
        ASSERT_TRUE(rows.pull(world, spec.tables, w).ok());
        ASSERT_TRUE(rows.push(world, spec.tables, w, [](int, RowId, std::size_t) { return 1.0f; }).ok());
        ASSERT_TRUE(world.push_and_commit(w).ok());
      },
      [&](const Cost& cost) { EXPECT_EQ(cost.round_trips, 2u * 2u); });
}

}  // namespace
}  // namespace paceline::pserver
