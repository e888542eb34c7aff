// Who is waited for: worker 0 holds all up while it loads or saves, and nobody is blamed as long as it moves.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <numeric>

#include "rows_world.h"
#include "runtime/collective/fault.h"
#include "stranger.h"
#include "tests/support/early_clock.h"
#include "tests/support/fake_clock.h"

namespace paceline::pserver {
namespace {

using ::testing::HasSubstr;

class ServersWaits : public ServersTest {};
INSTANTIATE_TEST_SUITE_P(Media, ServersWaits, media(), medium_name);

// Both servers hold up the second update of worker 1 until worker 0 takes the rows of its snapshot.
class HeldUp {
 public:
  HeldUp(ServersWorld& world, const WorldSpec& spec) : world_(world), spec_(spec) {}

  // Up to the snapshot's rows, or to its weights.
  void begin(bool takes_weights = true) {
    ServersWorld& world = world_;
    rows_.ids = {{}, {}};
    for (RowId id = 0; id < 20; ++id) rows_.ids[0].push_back(id);
    ASSERT_TRUE(world.begin(Floats(spec_.elements, 0)).ok());
    for (int w = 0; w < 2; ++w) ASSERT_TRUE(world.client(w).wait_turn(world.deadline()).ok());
    ASSERT_NO_FATAL_FAILURE(work());
    ASSERT_TRUE(world.client(1).wait_turn(world.deadline()).ok());
    Floats weights(spec_.elements);
    ASSERT_TRUE(world.client(0).begin_snapshot().ok());
    if (takes_weights) {
      ASSERT_TRUE(world.client(0).take_snapshot(weights, {}, world.deadline()).ok());
    }
    const Deadline limit = world.deadline();
    while (!takes_weights && world.server(0).snapshot_bytes() == 0) {  // it is not made yet
      ASSERT_FALSE(limit.expired(world.clock().now()));
      std::this_thread::yield();
    }
    ASSERT_NO_FATAL_FAILURE(work());
    ASSERT_TRUE(world.client(1).wait_turn(world.deadline()).ok());
    ASSERT_NO_FATAL_FAILURE(work());
    ASSERT_TRUE(world.client(1).flush(world.deadline()).ok());
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

// Worker 1 waits for its turn, or what else, in a thread of its own, for as long as its patience by the
// test's clock lasts.
class PatientWorker {
 public:
  using Wait = std::function<absl::StatusOr<TurnResult>(Client& client, Deadline deadline)>;
  PatientWorker(
      ServersWorld& world, EarlyClock& clock,
      const Wait& wait = [](Client& client, Deadline deadline) { return client.wait_turn(deadline); })
      : world_(world), clock_(clock), from_(clock.now()), thread_([this, &world, wait] {
          clock_.watch_this_thread();
          ends_.set_value(wait(world.client(1), Deadline::after(from_, kPatience)));
          clock_.thread_is_done();
        }) {}
  // Once it waits, and knows how long it may.
  void use_up_patience() {
    clock_.wait_until_asked(3);
    clock_.go_on_by(kPatience);
  }
  bool asks_again() { return clock_.wait_until_seen(from_ + kAskedAgain); }
  // Time goes on by so much, and it still waits then.
  bool waits_for_another(Duration time) {
    clock_.go_on_by(time);
    return clock_.wait_until_seen(from_ + (passed_ += time));
  }
  bool ends_within(Duration limit) { return end_.wait_for(limit) == std::future_status::ready; }
  absl::StatusOr<TurnResult> turn() { return end_.get(); }
  // The wait ends without another step of the clock.
  absl::StatusOr<TurnResult> end() {
    const bool ended = ends_within(std::chrono::seconds(20));
    EXPECT_TRUE(ended) << "it waits on";
    if (!ended) world_.client(1).close(absl::AbortedError("the test is over"));
    return turn();
  }
  // It ends well; with `stops`, in one of the next `steps` of the clock, as the fault of the server.
  void expect_end(bool stops, Duration step, const std::string& fault) {
    for (int i = 0; stops && i < 20 && !ends_within(std::chrono::milliseconds(200)); ++i)
      clock_.go_on_by(step);
    const auto turn = end();
    EXPECT_EQ(turn.ok(), !stops) << turn.status();
    if (stops) expect_fault(turn.status(), absl::StatusCode::kDeadlineExceeded, 2, fault);
  }

 private:
  ServersWorld& world_;
  EarlyClock& clock_;
  const TimePoint from_;
  Duration passed_{};
  std::promise<absl::StatusOr<TurnResult>> ends_;
  std::future<absl::StatusOr<TurnResult>> end_ = ends_.get_future();
  const std::jthread thread_;
};

TEST_P(ServersWaits, WaitForASnapshotsRowsBlamesNobody) {
  EarlyClock clock;
  WorldSpec spec = HeldUp::watched_spec_of(this->spec());
  spec.clock = &clock;
  spec.stall_limit = std::chrono::seconds(30);
  ServersWorld world(spec);
  HeldUp held(world, spec);
  ASSERT_NO_FATAL_FAILURE(held.begin());
  PatientWorker waits(world, clock);
  waits.use_up_patience();
  EXPECT_TRUE(waits.asks_again());
  RowsTaken taken;
  const absl::Status all = world.client(0).take_rows(taken, world.deadline());
  EXPECT_TRUE(all.ok()) << all;
  const auto turn = waits.turn();
  EXPECT_TRUE(turn.ok()) << turn.status();
  world.stranger(2).clear();
  world.end_well();
}

TEST_P(ServersWaits, StalledSnapshotOfRowsIsBlamedOnItsReader) {
  WorldSpec spec = HeldUp::watched_spec_of(this->spec());
  spec.stall_limit = std::chrono::milliseconds(20);
  ServersWorld world(spec);
  HeldUp held(world, spec);
  ASSERT_NO_FATAL_FAILURE(held.begin());
  const absl::Status late = world.client(1).wait_turn(world.deadline(std::chrono::milliseconds(30))).status();
  expect_fault(late, absl::StatusCode::kDeadlineExceeded, 0, "worker-0");
  EXPECT_THAT(std::string(late.message()),
              HasSubstr("it has taken nothing of a snapshot, which updates wait for"));
}

// Its weights come before its rows. They are larger than what sockets hold, so that the servers have some
// left when they hold the log up.
TEST(ServersWaitsOverTcp, TakingWeightsOfASnapshotIsProgress) {
  constexpr Duration kLate = std::chrono::hours(1);
  EarlyClock clock;
  WorldSpec spec;
  spec.medium = Medium::kTcp;
  spec.optimizer = sgd(0.5);
  spec = HeldUp::watched_spec_of(spec);
  spec.servers = 1;
  spec.elements = std::size_t{8} << 20;
  spec.slice_bytes = std::size_t{1} << 20;
  spec.server_clock = &clock;
  ServersWorld world(spec);
  HeldUp held(world, spec);
  ASSERT_NO_FATAL_FAILURE(held.begin(/*takes_weights=*/false));
  EXPECT_LT(world.server(0).snapshot_bytes(), spec.elements * sizeof(float));
  clock.go_on_by(kLate);
  Floats weights(spec.elements);
  int moves = 0;
  const auto taken = world.client(0).take_snapshot(weights, {}, world.deadline(), [&] { ++moves; });
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_GT(moves, 1) << "they come in parts";
  WaitingMessage said;
  ASSERT_NO_FATAL_FAILURE(Stranger::ask(world, 2, 0, said));
  EXPECT_EQ(said.hold, WaitingMessage::Hold::kSnapshot);
  EXPECT_LT(said.idle, kLate);
}

// Worker 1's first turn comes when worker 0 has said what to begin with.
TEST_P(ServersWaits, WaitForALoadBlamesNobody) {
  EarlyClock clock;
  WorldSpec spec = HeldUp::spec_of(this->spec());
  spec.clock = &clock;
  spec.stall_limit = std::chrono::seconds(30);
  ServersWorld world(spec);
  PatientWorker waits(world, clock);
  EXPECT_TRUE(world.client(0).report_loading().ok());
  waits.use_up_patience();
  EXPECT_TRUE(waits.asks_again());
  EXPECT_TRUE(world.client(0).report_loading().ok());
  EXPECT_TRUE(world.begin(Floats(spec.elements, 0)).ok());
  const auto turn = waits.turn();
  EXPECT_TRUE(turn.ok()) << turn.status();
  world.end_well();
}

TEST_P(ServersWaits, StalledLoadIsBlamedOnItsLoader) {
  WorldSpec spec = HeldUp::spec_of(this->spec());
  spec.stall_limit = std::chrono::milliseconds(20);
  ServersWorld world(spec);
  const absl::Status late = world.client(1).wait_turn(world.deadline(std::chrono::milliseconds(30))).status();
  expect_fault(late, absl::StatusCode::kDeadlineExceeded, 0,
               "it has sent nothing of what the servers begin with");
}

// However long worker 0 may load or save. The test speaks for both servers; time goes on when it says so.
TEST_P(ServersWaits, AServerThatAnswersNothingIsNamedWhileAnotherOneIsHeldUp) {
  const FakeClock stands;
  EarlyClock clock(stands);
  WorldSpec spec = this->spec({.strangers = {2, 3}, .clock = &clock});
  ServersWorld world(spec);
  PatientWorker waits(world, clock);
  waits.use_up_patience();
  const WaitingMessage loads{.rank = 0, .hold = WaitingMessage::Hold::kLoading, .idle = Duration::zero()};
  Stranger::answer(world, 2, 1, loads);
  clock.go_on_by(kPatience);
  const absl::Status late = waits.end().status();
  expect_fault(late, absl::StatusCode::kDeadlineExceeded, 3, "ps-1): it does not answer");
}

// A world has two workers and one server here.
WorldSpec tcp_world_spec(std::size_t elements, int stranger) {
  WorldSpec spec;
  spec.medium = Medium::kTcp;
  spec.workers = 2;
  spec.servers = 1;
  spec.elements = elements;
  spec.optimizer = sgd(0.1);
  spec.strangers = {stranger};
  return spec;
}

// A server of a world, spoken for by the test: sends a turn at once, and as much of its weights as it is
// told.
class SlowServer {
 public:
  SlowServer(ServersWorld& world, int rank, int worker, std::size_t floats)
      : rank_(rank), socket_(world.stranger(rank)[static_cast<std::size_t>(worker)].sockets[0].get()) {
    TurnResult turn;
    turn.unit = 0;
    Buffer message;
    encode(turn, message);
    announce(FrameKind::kTurn, message.size());
    write(message);
    announce(FrameKind::kWeights, floats * sizeof(float));
  }
  void send(std::size_t floats) { write(Buffer(floats * sizeof(float))); }
  void announce(FrameKind kind, std::size_t length, std::int64_t number = 0) {
    Buffer bytes(kFrameBytes);
    FrameHeader header{.kind = kind, .rank = rank_, .number = number, .length = length};
    header.generation = Generation{3};
    encode(header, std::span<std::byte, kFrameBytes>(bytes.data(), kFrameBytes));
    write(bytes);
  }

 private:
  void write(const Buffer& bytes) {
    ASSERT_EQ(::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }
  const int rank_, socket_;
};

TEST(ServersWaitsOverTcp, WeightsThatAreLongOnTheirWayAreNobodysFaultUntilTheyStop) {
  constexpr std::size_t kFloats = 3000;
  for (const bool stops : {false, true}) {
    const FakeClock stands;
    EarlyClock clock(stands);
    WorldSpec spec = tcp_world_spec(kFloats, 2);
    spec.clock = &clock;
    ServersWorld world(spec);
    PatientWorker waits(world, clock);
    clock.wait_until_asked(3);
    SlowServer server(world, 2, 1, kFloats);
    server.send(1000);
    // It asks, nothing answers within 2 s, and it asks again.
    for (const int seconds : {20, 3, 3, 3})
      EXPECT_TRUE(waits.waits_for_another(std::chrono::seconds(seconds)));
    if (!stops) server.send(kFloats - 1000);
    waits.expect_end(stops, std::chrono::seconds(3), "it has not sent its weights");
  }
}

TEST(ServersWaitsOverTcp, RowsThatAreLongOnTheirWayAreWaitedForUntilTheyStop) {
  constexpr std::size_t kIds = 100, kDim = 30;
  for (const bool stops : {false, true}) {
    const FakeClock stands;
    EarlyClock clock(stands);
    WorldSpec spec = tcp_world_spec(10, 2);
    spec.tables = {table_of("a", kDim)};
    spec.row_floats = kIds * kDim;
    spec.clock = &clock;
    ServersWorld world(spec);
    SlowServer server(world, 2, 1, spec.elements);
    server.send(spec.elements);
    std::vector<RowId> ids(kIds);
    std::iota(ids.begin(), ids.end(), 0);
    Floats rows(kIds * kDim);
    PatientWorker waits(world, clock, [&](Client& client, Deadline deadline) {
      auto turn = client.wait_turn(deadline);
      const absl::Status pulled = client.pull_rows({{{0, ids, rows}}}, deadline);
      if (turn.ok() && !pulled.ok()) turn = pulled;
      return turn;
    });
    ASSERT_NO_FATAL_FAILURE(Stranger::hear(world, 2, 1, FrameKind::kPullRows));
    server.announce(FrameKind::kRows, rows.size() * sizeof(float), 1);
    server.send(1000);
    EXPECT_TRUE(waits.waits_for_another(kPatience + std::chrono::seconds(1))) << "some came meanwhile";
    server.send(1000);
    EXPECT_TRUE(waits.waits_for_another(kPatience + std::chrono::seconds(1))) << "some came again";
    if (!stops) server.send(1000);
    waits.expect_end(stops, std::chrono::seconds(10), "has not sent its rows");
  }
}

// Who waits for a worker whose gradient is on its way learns when some of it came last.
TEST(ServersWaitsOverTcp, AServerSaysWhenSomeOfAGradientCameLast) {
  const FakeClock stands;
  EarlyClock clock(stands);
  WorldSpec spec = tcp_world_spec(3000, 1);
  spec.server_clock = &clock;
  ServersWorld world(spec);
  Stranger slow(world, spec);
  ASSERT_TRUE(world.begin(Floats(spec.elements, 0)).ok());
  const Unit unit = slow.wait_for_turn();
  WaitingMessage said;
  for (std::uint64_t begin : {std::uint64_t{0}, std::uint64_t{1000}, std::uint64_t{2000}}) {
    clock.go_on_by(std::chrono::seconds(7));
    ASSERT_NO_FATAL_FAILURE(Stranger::ask(world, 1, 0, said));
    EXPECT_GE(said.idle, std::chrono::seconds(7)) << "before byte " << begin;
    const Floats some(1000, 1.0f);
    slow.send({.kind = FrameKind::kGradient, .number = unit, .begin = begin}, std::as_bytes(std::span(some)));
    ASSERT_NO_FATAL_FAILURE(Stranger::ask(world, 1, 0, said));
    EXPECT_EQ(said.idle, Duration::zero()) << "from byte " << begin;
  }
}

// A server that is late with rows costs the snapshot, not the client.
TEST_P(ServersWaits, ALateServerEndsASnapshotAndNothingElse) {
  for (const bool comes_back : {true, false}) {
    SCOPED_TRACE(comes_back);
    StandStill still;
    EarlyClock clock;
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
