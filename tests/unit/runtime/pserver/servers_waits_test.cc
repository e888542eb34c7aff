// Who is waited for: worker 0 holds all up while it loads or saves, and nobody is blamed as long as it moves.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rows_world.h"
#include "runtime/collective/fault.h"
#include "stranger.h"

namespace paceline::pserver {
namespace {

using namespace testing;
using ::testing::HasSubstr;

class ServersWaits : public testing::ServersTest {};
INSTANTIATE_TEST_SUITE_P(Media, ServersWaits, testing::media(), testing::medium_name);

// The machine's, ahead by what the test says, and what it told one thread last.
class WatchedClock final : public Clock {
 public:
  TimePoint now() const override {
    auto seen = seen_.lock();
    const TimePoint now = clock_.now() + seen->ahead;
    if (seen->thread != std::this_thread::get_id()) return now;
    seen->newest = now;
    ++seen->looks;
    return now;
  }
  WallTime wall_now() const override { return clock_.wall_now(); }

  void watch_this_thread() { seen_.lock()->thread = std::this_thread::get_id(); }
  // Waits until that thread has asked for the time so often.
  void wait_until_asked(int times) {
    (void)seen_.lock_when([times](const Seen& seen) { return seen.done || seen.looks >= times; },
                          std::chrono::minutes(1));
  }
  void go_on_by(Duration time) { seen_.lock()->ahead += time; }
  void thread_is_done() { seen_.lock()->done = true; }
  // Waits until that thread has seen that moment; false: it is done before.
  bool wait_until_seen(TimePoint moment) {
    const auto over = [moment](const Seen& seen) { return seen.done || seen.newest >= moment; };
    return !seen_.lock_when(over, std::chrono::minutes(1))->done;
  }

 private:
  struct Seen {
    std::thread::id thread;
    TimePoint newest{};
    Duration ahead{};
    int looks = 0;
    bool done = false;
  };
  SystemClock clock_;
  mutable Guarded<Seen> seen_;
};

// Both servers hold up the second update of worker 1 until worker 0 takes the rows of its snapshot.
class HeldUp {
 public:
  HeldUp(ServersWorld& world, const WorldSpec& spec) : world_(world), spec_(spec) {}

  void begin() {
    ServersWorld& world = world_;
    rows_.ids = {{}, {}};
    for (RowId id = 0; id < 20; ++id) rows_.ids[0].push_back(id);
    ASSERT_TRUE(world.begin(Floats(spec_.elements, 0)).ok());
    for (int w = 0; w < 2; ++w) ASSERT_TRUE(world.client(w).wait_turn(world.deadline()).ok());
    ASSERT_NO_FATAL_FAILURE(work());
    ASSERT_TRUE(world.client(1).wait_turn(world.deadline()).ok());
    Floats weights(spec_.elements);
    ASSERT_TRUE(world.client(0).begin_snapshot().ok());
    ASSERT_TRUE(world.client(0).take_snapshot(weights, {}, world.deadline()).ok());
    ASSERT_NO_FATAL_FAILURE(work());
    ASSERT_TRUE(world.client(1).wait_turn(world.deadline()).ok());
    ASSERT_NO_FATAL_FAILURE(work());
    if (!spec_.strangers.empty()) {
      ASSERT_NO_FATAL_FAILURE(wait_until_held());
    }
  }
  static WorldSpec spec_of(WorldSpec spec) {
    spec.max_kept_bytes = 0;
    spec.mode.set_synchronization(v1::ParameterServerSpec::ASYNCHRONOUS);
    spec.tables = {table_of("a", 4), table_of("b", 1)};
    spec.row_floats = 100;
    return spec;
  }
  // With a third worker that only asks what is waited for.
  static WorldSpec watched_spec_of(const WorldSpec& spec) {
    WorldSpec watched = spec_of(spec);
    watched.workers = 3;
    watched.strangers = {2};
    return watched;
  }

 private:
  void wait_until_held() {
    const Deadline limit = world_.deadline();
    for (int s = 0; s < spec_.servers; ++s) {
      for (WaitingMessage said; said.hold != WaitingMessage::Hold::kSnapshot;) {
        ASSERT_FALSE(limit.expired(world_.clock().now())) << "server " << s << " holds nothing up";
        ASSERT_NO_FATAL_FAILURE(Stranger::ask(world_, 2, s, said));
      }
    }
  }
  void work() {
    ASSERT_TRUE(rows_.push(world_, spec_.tables, 1, [](int, RowId, std::size_t) { return -1.0f; }).ok());
    ASSERT_TRUE(world_.push_and_commit(1).ok());
  }
  ServersWorld& world_;
  const WorldSpec& spec_;
  WorkerRows rows_;
};

// How long a turn is waited for, by a clock that goes on by as much; and then longer than until it is asked
// again what is waited for. A server that is late by less changes nothing.
constexpr Duration kPatience = std::chrono::seconds(20);
constexpr Duration kAskedAgain = kPatience + std::chrono::milliseconds(1200);

TEST_P(ServersWaits, WhoWaitsForASnapshotsRowsToBeTakenBlamesNobody) {
  WatchedClock clock;
  WorldSpec spec = HeldUp::watched_spec_of(this->spec());
  spec.clock = &clock;
  spec.stall_limit = std::chrono::seconds(30);
  ServersWorld world(spec);
  if (HasFatalFailure()) return;
  HeldUp held(world, spec);
  ASSERT_NO_FATAL_FAILURE(held.begin());
  absl::StatusOr<TurnResult> turn;
  {
    const TimePoint from = clock.now();
    const std::jthread waits([&] {
      clock.watch_this_thread();
      turn = world.client(1).wait_turn(Deadline::after(from, kPatience));
      clock.thread_is_done();
    });
    clock.wait_until_asked(3);  // it knows how long it may wait
    clock.go_on_by(kPatience);
    EXPECT_TRUE(clock.wait_until_seen(from + kAskedAgain));
    RowsTaken taken;
    const absl::Status all = world.client(0).take_rows(taken, world.deadline());
    EXPECT_TRUE(all.ok()) << all;
  }
  EXPECT_TRUE(turn.ok()) << turn.status();
  world.stranger(2).clear();
  for (const absl::Status& ended : world.end()) EXPECT_TRUE(ended.ok()) << ended;
}

TEST_P(ServersWaits, WhoTakesNoRowsOfASnapshotForTooLongIsBlamed) {
  WorldSpec spec = HeldUp::watched_spec_of(this->spec());
  spec.stall_limit = std::chrono::milliseconds(20);
  ServersWorld world(spec);
  if (HasFatalFailure()) return;
  HeldUp held(world, spec);
  ASSERT_NO_FATAL_FAILURE(held.begin());
  const absl::Status late = world.client(1).wait_turn(world.deadline(std::chrono::milliseconds(30))).status();
  EXPECT_EQ(late.code(), absl::StatusCode::kDeadlineExceeded) << late;
  EXPECT_EQ(collective::faulty_rank(late), 0) << late;
  EXPECT_THAT(std::string(late.message()), HasSubstr("worker-0"));
  EXPECT_THAT(std::string(late.message()),
              HasSubstr("it has taken no rows of a snapshot, which updates wait for"));
}

// Worker 1's first turn comes when worker 0 has said what to begin with.
TEST_P(ServersWaits, WhoWaitsForAStateToBeLoadedBlamesNobody) {
  WatchedClock clock;
  WorldSpec spec = HeldUp::spec_of(this->spec());
  spec.clock = &clock;
  spec.stall_limit = std::chrono::seconds(30);
  ServersWorld world(spec);
  if (HasFatalFailure()) return;
  absl::StatusOr<TurnResult> turn;
  {
    const TimePoint from = clock.now();
    const std::jthread waits([&] {
      clock.watch_this_thread();
      turn = world.client(1).wait_turn(Deadline::after(from, kPatience));
      clock.thread_is_done();
    });
    EXPECT_TRUE(world.client(0).tell_loading().ok());
    clock.wait_until_asked(3);
    clock.go_on_by(kPatience);
    EXPECT_TRUE(clock.wait_until_seen(from + kAskedAgain));
    EXPECT_TRUE(world.client(0).tell_loading().ok());
    EXPECT_TRUE(world.begin(Floats(spec.elements, 0)).ok());
  }
  EXPECT_TRUE(turn.ok()) << turn.status();
  for (const absl::Status& ended : world.end()) EXPECT_TRUE(ended.ok()) << ended;
}

TEST_P(ServersWaits, WhoLoadsNothingForTooLongIsBlamed) {
  WorldSpec spec = HeldUp::spec_of(this->spec());
  spec.stall_limit = std::chrono::milliseconds(20);
  ServersWorld world(spec);
  if (HasFatalFailure()) return;
  const absl::Status late = world.client(1).wait_turn(world.deadline(std::chrono::milliseconds(30))).status();
  EXPECT_EQ(late.code(), absl::StatusCode::kDeadlineExceeded) << late;
  EXPECT_EQ(collective::faulty_rank(late), 0) << late;
  EXPECT_THAT(std::string(late.message()), HasSubstr("it has sent nothing of what the servers begin with"));
}

// A server that is late with rows costs the snapshot, not the client.
TEST_P(ServersWaits, ALateServerEndsASnapshotAndNothingElse) {
  for (const bool comes_back : {true, false}) {
    SCOPED_TRACE(comes_back);
    StandStill still;
    WatchedClock clock;
    WorldSpec spec = HeldUp::spec_of(this->spec());
    spec.servers = 1;
    spec.strangers = {1};
    spec.clock = &clock;
    spec.when_lost = [&](int) { still.stand(); };
    ServersWorld world(spec);
    const Releases releases{still};
    if (HasFatalFailure()) return;
    Client& client = world.client(0);
    const auto soon = [&clock] { return Deadline::after(clock.now(), std::chrono::minutes(1)); };
    ASSERT_TRUE(world.begin(Floats(spec.elements, 0)).ok());
    ASSERT_TRUE(client.wait_turn(world.deadline()).ok());
    Floats weights(spec.elements);
    ASSERT_TRUE(client.begin_snapshot().ok());
    ASSERT_TRUE(client.take_snapshot(weights, {}, world.deadline()).ok());
    world.stranger(1).clear();
    still.wait_until_it_stands();
    absl::Status late;
    {
      constexpr Duration kLimit = std::chrono::minutes(1);
      const std::jthread takes([&] {
        RowsTaken taken;
        clock.watch_this_thread();
        late = client.take_rows(taken, Deadline::after(clock.now(), kLimit));
        clock.thread_is_done();
      });
      clock.wait_until_asked(4);  // it waits, and has looked how long it may
      for (bool waits = true; waits;) {
        clock.go_on_by(kLimit);
        waits = clock.wait_until_seen(clock.now()) && !comes_back;
      }
      if (comes_back) still.release();
    }
    EXPECT_EQ(late.code(), absl::StatusCode::kDeadlineExceeded) << late;
    EXPECT_THAT(std::string(late.message()), HasSubstr("ps-0"));
    EXPECT_THAT(std::string(late.message()), HasSubstr("has sent nothing of a snapshot's rows for"));
    EXPECT_TRUE(client.closed().ok()) << client.closed();
    still.release();
    if (comes_back) {
      RowsTaken taken;
      EXPECT_TRUE(client.begin_snapshot().ok());
      EXPECT_TRUE(client.take_snapshot(weights, {}, soon()).ok());
      EXPECT_TRUE(client.take_rows(taken, soon()).ok());
    } else {
      EXPECT_EQ(client.begin_snapshot().code(), absl::StatusCode::kFailedPrecondition);
    }
    ASSERT_TRUE(world.push_and_commit(0).ok());
    const auto turn = client.wait_turn(soon());
    EXPECT_TRUE(turn.ok()) << turn.status();
  }
}

}  // namespace
}  // namespace paceline::pserver
