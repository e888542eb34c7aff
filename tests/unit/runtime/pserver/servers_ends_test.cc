// Deadlines, and how workers and servers end.

#include <gtest/gtest.h>

#include "runtime/collective/fault.h"
#include "servers_world.h"

namespace paceline::pserver {
namespace {

class ServersEnds : public ServersTest {};
INSTANTIATE_TEST_SUITE_P(Media, ServersEnds, media(), medium_name);

TEST_P(ServersEnds, WorkerThatDoesNotPushIsNamed) {
  WorldSpec spec = this->spec({.workers = 3});
  ServersWorld world(spec, 0);
  for (int w = 0; w < 3; ++w) ASSERT_TRUE(world.client(w).wait_turn(world.deadline()).ok());
  for (const int w : {0, 2}) ASSERT_TRUE(world.push_and_commit(w).ok());
  const auto turn = world.client(0).wait_turn(world.deadline(std::chrono::milliseconds(30)));
  expect_fault(turn.status(), absl::StatusCode::kDeadlineExceeded, 1, "worker-1");
}

TEST_P(ServersEnds, AServerThatDoesNotAnswerIsNamed) {
  WorldSpec spec = this->spec();
  spec.run_servers = false;
  ServersWorld world(spec, 0);
  const auto turn = world.client(1).wait_turn(world.deadline(std::chrono::milliseconds(20)));
  expect_fault(turn.status(), absl::StatusCode::kDeadlineExceeded, 2);
}

TEST_P(ServersEnds, AServerWaitsForWorkerZeroUntilItsDeadline) {
  WorldSpec spec = this->spec();
  spec.run_servers = false;
  ServersWorld world(spec);
  const absl::Status ended = world.server(0).run(world.deadline(std::chrono::milliseconds(20)));
  expect_fault(ended, absl::StatusCode::kDeadlineExceeded, 0);
  // The workers hear why.
  const auto turn = world.client(1).wait_turn(world.deadline());
  expect_fault(turn.status(), absl::StatusCode::kDeadlineExceeded, 0);
}

TEST_P(ServersEnds, CloseEndsEveryWait) {
  for (int state = 0; state < 3; ++state) {
    SCOPED_TRACE(state);
    WorldSpec spec = this->spec();
    ServersWorld world(spec);
    if (state > 0) {
      ASSERT_TRUE(world.begin(Floats(spec.elements, 0)).ok());
    }
    if (state > 1) {
      for (int w = 0; w < 2; ++w) ASSERT_TRUE(world.client(w).wait_turn(world.deadline()).ok());
      ASSERT_TRUE(world.push_and_commit(1).ok());
    }
    const absl::Status why = absl::AbortedError("the coordinator said so");
    if (state == 1) {
      ASSERT_TRUE(world.client(1).wait_turn(world.deadline()).ok());
    }
    std::jthread waits([&] {
      if (state == 1) return;
      EXPECT_EQ(world.client(1).wait_turn(world.deadline()).status(), why);
    });
    world.client(1).close(why);
    world.client(1).close(absl::InternalError("a second reason"));
    waits.join();
    EXPECT_EQ(world.client(1).closed(), why);
    EXPECT_EQ(world.client(1).wait_turn(world.deadline()).status(), why);
    EXPECT_EQ(world.client(1).push(0, 1), why);
    EXPECT_EQ(world.client(1).commit({}), why);
    EXPECT_EQ(world.client(1).leave(), why);
    world.server(0).close(why);
    world.server(1).close(absl::OkStatus());
  }
}

TEST_P(ServersEnds, AServerThatClosesSaysWhy) {
  WorldSpec spec = this->spec();
  ServersWorld world(spec, 0);
  for (int w = 0; w < 2; ++w) {
    ASSERT_TRUE(world.client(w).wait_turn(world.deadline()).ok());
    ASSERT_TRUE(w == 1 || world.push_and_commit(w).ok());
  }
  world.server(1).close(absl::AbortedError("the coordinator said so"));
  const absl::Status ended = world.client(0).wait_turn(world.deadline()).status();
  expect_fault(ended, absl::StatusCode::kAborted, 3, "the coordinator said so");
}

// The end of a job: no turns any more, but a last snapshot, and a goodbye.
TEST_P(ServersEnds, AnInterruptedWorkerTakesNoTurnsButSnapshots) {
  WorldSpec spec = this->spec();
  ServersWorld world(spec, 3);
  for (int w = 0; w < 2; ++w) ASSERT_TRUE(world.client(w).wait_turn(world.deadline()).ok());
  ASSERT_TRUE(world.push_and_commit(0).ok());
  std::jthread waits([&] {  // for worker 1's gradient, which does not come
    EXPECT_EQ(world.client(0).wait_turn(world.deadline()).status().code(), absl::StatusCode::kCancelled);
  });
  world.client(0).interrupt();
  waits.join();
  EXPECT_TRUE(world.client(0).interrupted());
  EXPECT_TRUE(world.client(0).closed().ok());
  EXPECT_EQ(world.client(0).wait_turn(world.deadline()).status().code(), absl::StatusCode::kCancelled);
  Floats weights(spec.elements);
  ASSERT_TRUE(world.client(0).begin_snapshot().ok());
  const auto taken = world.client(0).take_snapshot(weights, {}, world.deadline());
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_EQ(weights, Floats(spec.elements, 3));
  world.end_well();
}

// More than the sockets hold: what was queued before a worker was interrupted goes before the snapshot.
TEST_P(ServersEnds, AnInterruptedWorkersGradientIsSentBeforeItsSnapshot) {
  WorldSpec spec =
      this->spec({.servers = 1, .elements = std::size_t{6} << 20, .slice_bytes = std::size_t{1} << 20});
  ServersWorld world(spec, 3);
  for (int w = 0; w < 2; ++w) ASSERT_TRUE(world.client(w).wait_turn(world.deadline()).ok());
  ASSERT_TRUE(world.push_and_commit(0).ok());
  world.client(0).interrupt();
  ASSERT_TRUE(world.client(0).begin_snapshot().ok());
  ASSERT_TRUE(world.client(0).flush(world.deadline()).ok());
  Floats weights(spec.elements);
  const auto taken = world.client(0).take_snapshot(weights, {}, world.deadline());
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_EQ(weights, Floats(spec.elements, 3));
  world.end_well();
}

TEST_P(ServersEnds, CloseEndsASnapshot) {
  WorldSpec spec = this->spec();
  spec.run_servers = false;
  ServersWorld world(spec, 0);
  ASSERT_TRUE(world.client(0).begin_snapshot().ok());
  Floats weights(spec.elements);
  std::jthread takes([&] {
    const auto taken = world.client(0).take_snapshot(weights, {}, world.deadline());
    EXPECT_EQ(taken.status().code(), absl::StatusCode::kAborted) << taken.status();
  });
  world.client(0).close(absl::OkStatus());
}

TEST_P(ServersEnds, AllWorkersLostIsAnError) {
  WorldSpec spec = this->spec();
  ServersWorld world(spec, 0);
  world.drop_client(0);
  world.drop_client(1);
  for (const absl::Status& ended : world.end()) {
    EXPECT_EQ(ended.code(), absl::StatusCode::kUnavailable) << ended;
    EXPECT_TRUE(collective::faulty_rank(ended).has_value());
  }
}

}  // namespace
}  // namespace paceline::pserver
