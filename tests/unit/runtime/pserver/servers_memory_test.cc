// What a server may come to hold of the dense weights is asked for before the first turn.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <span>
#include <vector>

#include "base/text.h"
#include "runtime/transport/memory.h"
#include "servers_world.h"

namespace paceline::pserver {
namespace {

using ::testing::HasSubstr;

constexpr int kWorkers = 3;
constexpr std::size_t kTableElements = std::size_t{1} << 16, kBytes = kTableElements * sizeof(float);

struct Case {
  const char* name;
  v1::ParameterServerSpec::Synchronization mode;
  bool compensates;
  std::size_t over_tcp, shared;  // vectors; with momentum, so that a snapshot is of two
};
constexpr Case kCases[] = {
    {"synchronous", v1::ParameterServerSpec::SYNCHRONOUS, false, 1 + 3 + 2, 1 + 2},
    {"asynchronous", v1::ParameterServerSpec::ASYNCHRONOUS, false, 4 + 3 + 2, 4 + 2},
    {"compensates", v1::ParameterServerSpec::ASYNCHRONOUS, true, 4 + 3 + 3 + 2, 4 + 3 + 2},
    {"bounded", v1::ParameterServerSpec::BOUNDED_STALENESS, false, 4 + 3 + 3 + 2, 4 + 3 + 2},
};

class ServersMemory : public ServersTest {
 protected:
  WorldSpec spec_of(const Case& c, std::size_t arena_bytes) const {
    WorldSpec spec = this->spec(
        {.workers = kWorkers, .servers = 1, .elements = kTableElements, .optimizer = sgd(0.5, 0.9)});
    spec.mode.set_synchronization(c.mode);
    spec.mode.set_staleness(1);
    if (c.compensates) spec.mode.set_delay_compensation(0.1);
    spec.arena_bytes = arena_bytes;
    spec.ahead_floats = kAheadFloats;
    return spec;
  }
  std::size_t need_of(const Case& c) const { return GetParam() == Medium::kTcp ? c.over_tcp : c.shared; }
};
INSTANTIATE_TEST_SUITE_P(Media, ServersMemory, media(), medium_name);

TEST_P(ServersMemory, TooLittleIsToldBeforeTheFirstTurn) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    const std::size_t need = need_of(c) * kBytes;
    ServersWorld world(spec_of(c, need - transport::Arena::kAlignment));
    if (HasFatalFailure()) return;
    absl::Status told = world.begin(Floats(kTableElements, 0));
    if (told.ok()) told = world.client(0).wait_turn(world.deadline()).status();
    EXPECT_EQ(told.code(), absl::StatusCode::kResourceExhausted) << told;
    for (int w = 0; w < kWorkers; ++w) world.drop_client(w);
    const absl::Status ended = world.end().front();
    EXPECT_EQ(ended.code(), absl::StatusCode::kResourceExhausted) << ended;
    const std::string said(ended.message());
    EXPECT_THAT(said, HasSubstr(str_cat("is ", kBytes, " bytes, and it may need ", need_of(c), " times")));
    EXPECT_THAT(said, HasSubstr(str_cat(": ", need, " bytes, and ")));
    EXPECT_THAT(said, HasSubstr("take more servers (ps)"));
  }
}

TEST_P(ServersMemory, RequestedMemoryIsEnough) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    const WorldSpec spec = spec_of(c, need_of(c) * kBytes);
    ServersWorld world(spec);
    ASSERT_TRUE(world.begin(Floats(kTableElements, 0)).ok());
    world.each_worker([&](int w) {
      while (true) {
        const TurnResult turn = world.turn(w);
        if (turn.finished) break;
        ASSERT_TRUE(world.push_and_commit(w).ok());
      }
    });
    Floats weights(kTableElements), momentum(kTableElements);
    const std::vector<std::span<float>> states{momentum};
    ASSERT_TRUE(world.client(0).begin_snapshot().ok());
    const auto taken = world.client(0).take_snapshot(weights, states, world.deadline());
    EXPECT_TRUE(taken.ok()) << taken.status();
    world.end_well();
  }
}

}  // namespace
}  // namespace paceline::pserver
