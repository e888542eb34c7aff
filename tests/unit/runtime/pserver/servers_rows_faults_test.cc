// Rows of sparse tables where things go wrong: units that are lost, dropped and repeated, servers that do not
// answer, and sinks that fail.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "rows_world.h"
#include "runtime/collective/fault.h"
#include "stranger.h"

namespace paceline::pserver {
namespace {

using ::testing::HasSubstr;

class ServersRowsFaults : public ServersTest {};
INSTANTIATE_TEST_SUITE_P(Media, ServersRowsFaults, media(), medium_name);

void dawdle(Rng& rng) {
  for (std::uint64_t k = rng.below(4) == 0 ? rng.below(2000) : 0; k > 0; --k) std::this_thread::yield();
}

std::vector<std::vector<RowId>> ids_of(std::uint64_t seed, Unit unit) {
  Rng rng(seed, 300 + static_cast<std::uint64_t>(unit));
  return {random_ids(rng, 60, 80), random_ids(rng, 30, 40)};
}

// In random modes, with random delays, and with workers that die anywhere in a unit: unit u adds u + 1 to
// each row of a set of its own, in both tables, and to the dense weights, once.
TEST_P(ServersRowsFaults, EachUnitsRowsAreAppliedOnce) {
  for (std::uint64_t seed = 1; seed <= 16; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed, 3);
    WorldSpec spec = this->spec();
    const RandomMode random = make_random(spec, seed, rng);
    spec.elements = 1 + rng.below(500);
    spec.tables = {table_of("a", 1 + rng.below(20)), table_of("b", 1 + rng.below(3))};
    spec.row_floats = 60 * 20 + 30 * 3;
    const Unit units = random.units;
    std::vector<std::map<RowId, float>> expected(2);
    for (Unit u = 0; u < units; ++u) {
      const auto ids = ids_of(seed, u);
      for (std::size_t t = 0; t < 2; ++t) {
        for (const RowId id : ids[t]) expected[t][id] += static_cast<float>(u + 1);
      }
    }
    ServersWorld world(spec, 0);
    world.each_worker([&](int w) {
      Rng mine(seed, 700 + static_cast<std::uint64_t>(w));
      WorkerRows rows;
      for (int k = 0;; ++k) {
        const auto dies = [&] {
          return w == random.victim && w > 0 && k >= random.turns && mine.below(3) == 0;
        };
        const TurnResult turn = world.turn(w);
        dawdle(mine);
        if (turn.finished) {
          EXPECT_EQ(world.weights(w)[0], static_cast<float>(units * (units + 1) / 2));
          rows.ids = {{}, {}};
          for (std::size_t t = 0; t < 2; ++t) {
            for (const auto& [id, value] : expected[t]) rows.ids[t].push_back(id);
          }
          ASSERT_TRUE(rows.pull(world, spec.tables, w).ok());
          for (std::size_t t = 0; t < 2; ++t) {
            for (std::size_t n = 0; n < rows.ids[t].size(); ++n) {
              EXPECT_EQ(rows.value(t, n, spec.tables[t].dim), expected[t][rows.ids[t][n]]);
            }
          }
          return;
        }
        rows.ids = ids_of(seed, turn.unit);
        ASSERT_TRUE(rows.pull(world, spec.tables, w).ok());
        dawdle(mine);
        if (dies()) return world.drop_client(w);
        const auto value = -static_cast<float>(turn.unit + 1);
        std::fill(world.gradient(w).begin(), world.gradient(w).end(), value);
        const bool dense_first = mine.below(2) == 0;
        if (dense_first) {
          ASSERT_TRUE(world.client(w).push(0, spec.elements).ok());
        }
        ASSERT_TRUE(rows.push(world, spec.tables, w, [&](int, RowId, std::size_t) { return value; }).ok());
        dawdle(mine);
        if (dies()) return world.drop_client(w);
        if (!dense_first) {
          ASSERT_TRUE(world.client(w).push(0, spec.elements).ok());
        }
        ASSERT_TRUE(world.client(w).commit({.loss_sum = 1, .samples = 1}).ok());
        if (dies()) return world.drop_client(w);
      }
    });
    RowsTaken taken;
    const auto info = take_all(world, taken);
    ASSERT_TRUE(info.ok()) << info.status();
    EXPECT_EQ(taken.rows.size(), expected[0].size() + expected[1].size());
    for (const auto& [key, row] : taken.rows) {
      ASSERT_EQ(row.floats[0], expected[static_cast<std::size_t>(key.first)][key.second]) << key.second;
    }
    world.end_well();
  }
}

TEST_P(ServersRowsFaults, CallersMistakeClosesNothing) {
  WorldSpec spec = this->spec({.workers = 1, .tables = {table_of("ads", 4)}, .row_floats = 100});
  ServersWorld world(spec, 0);
  ASSERT_TRUE(world.client(0).wait_turn(world.deadline()).ok());
  Client& client = world.client(0);
  Floats rows(8), elsewhere(8);
  const std::vector<RowId> falling = {7, 5}, rising = {5, 7};
  const auto pulls = [&](std::vector<sparse::RowsPull> each) {
    const absl::Status status = client.pull_rows(each, world.deadline());
    EXPECT_TRUE(status.ok() || absl::IsInvalidArgument(status)) << status;
    return std::string(status.message());
  };
  EXPECT_THAT(pulls({{0, falling, rows}}), HasSubstr("table ads: row ids must rise: number 1 is 5 after 7"));
  EXPECT_THAT(pulls({{1, rising, rows}}), HasSubstr("table 1 of 1: there is no such table"));
  EXPECT_THAT(pulls({{0, rising, std::span(rows).first(7)}}), HasSubstr("7 floats for 2 rows of 4"));
  EXPECT_THAT(pulls({{0, rising, rows}, {0, rising, rows}}), HasSubstr("table ads comes twice in one call"));
  EXPECT_EQ(pulls({}), "");
  EXPECT_EQ(pulls({{0, {}, {}}}), "");
  const sparse::RowsPush outside[] = {{0, rising, elsewhere}};
  EXPECT_THAT(std::string(client.push_rows(outside).message()),
              HasSubstr("does not lie in the fabric's arena"));
  const sparse::RowsPush pushes[] = {{0, rising, world.row_gradient(0).first(8)}};
  ASSERT_TRUE(client.push_rows(pushes).ok());
  ASSERT_TRUE(world.push_and_commit(0).ok());
  ASSERT_TRUE(client.wait_turn(world.deadline()).ok());
  ASSERT_TRUE(client.push_rows({}).ok());
  ASSERT_TRUE(world.push_and_commit(0).ok());
  ASSERT_TRUE(client.wait_turn(world.deadline()).ok());
  world.end_well();
}

// Sharing memory, answers lie in the server's arena, which is too small for this one.
TEST(ServersRowsMemory, AServersLackOfItIsNoWorkersFault) {
  constexpr std::size_t kDim = 4096;
  std::atomic<bool> lost{false};
  WorldSpec spec;
  spec.servers = 1;
  spec.optimizer = sgd(0.5);
  spec.arena_bytes = std::size_t{16} << 20;
  spec.tables = {table_of("deep", kDim)};
  spec.when_lost = [&](int) { lost = true; };
  ServersWorld world(spec, 0);
  ASSERT_TRUE(world.client(1).wait_turn(world.deadline()).ok());
  WorkerRows rows;
  rows.ids.emplace_back();
  for (RowId id = 0; id < 2 * spec.arena_bytes / (kDim * sizeof(float)); ++id) rows.ids[0].push_back(id);
  const absl::Status pulled = rows.pull(world, spec.tables, 1);
  expect_fault(pulled, absl::StatusCode::kResourceExhausted, 2, "rows that rank 1 (worker-1) asks for");
  EXPECT_FALSE(lost);
}

TEST_P(ServersRowsFaults, DeadlineInterruptAndCloseEndAPull) {
  for (int how = 0; how < 3; ++how) {
    SCOPED_TRACE(how);
    StandStill still;
    WorldSpec spec = this->spec({.workers = 2,
                                 .mode = asynchronous(),
                                 .strangers = {1},
                                 .tables = {table_of("a", 8)},
                                 .row_floats = 1000});
    spec.when_lost = [&](int server) {
      if (server == 0) still.stand();
    };
    {
      ServersWorld world(spec);
      const Releases releases{still};
      if (HasFatalFailure()) return;
      ASSERT_TRUE(world.begin(Floats(spec.elements, 0)).ok());
      ASSERT_TRUE(world.client(0).wait_turn(world.deadline()).ok());
      world.stranger(1).clear();
      still.wait_until_it_stands();
      WorkerRows rows;
      rows.ids.emplace_back();
      for (RowId id = 0; id < 100; ++id) rows.ids[0].push_back(id);
      const absl::Status why = absl::AbortedError("the coordinator said so");
      if (how == 0) {
        const absl::Status late = rows.pull(world, spec.tables, 0, std::chrono::milliseconds(20));
        expect_fault(late, absl::StatusCode::kDeadlineExceeded, 2, "ps-0");
        EXPECT_EQ(world.client(0).closed(), late);
      } else {
        std::jthread waits([&] {
          const absl::Status ended = rows.pull(world, spec.tables, 0);
          EXPECT_EQ(ended.code(), how == 1 ? absl::StatusCode::kCancelled : absl::StatusCode::kAborted)
              << ended;
        });
        if (how == 1) world.client(0).interrupt();
        if (how == 2) world.client(0).close(why);
        waits.join();
        EXPECT_EQ(world.client(0).closed().ok(), how == 1);
      }
      still.release();
      if (how == 1) {  // no turns any more, but a last snapshot, with its rows
        EXPECT_TRUE(absl::IsCancelled(rows.pull(world, spec.tables, 0)));
        RowsTaken taken;
        const auto info = take_all(world, taken);
        EXPECT_TRUE(info.ok()) << info.status();
        world.end_well();
      }
    }
  }
}

TEST_P(ServersRowsFaults, ASinksErrorEndsTheSnapshotAndNothingElse) {
  WorldSpec spec = this->spec(
      {.workers = 1, .tables = {table_of("a", 512), table_of("b", 1)}, .row_floats = 4000 * 512 + 1});
  ServersWorld world(spec, 0);
  ASSERT_TRUE(world.client(0).wait_turn(world.deadline()).ok());
  WorkerRows rows;
  rows.ids.resize(2);
  for (RowId id = 0; id < 4000; ++id) rows.ids[0].push_back(id);
  rows.ids[1] = {3};
  ASSERT_TRUE(rows.push(world, spec.tables, 0, [](int, RowId, std::size_t) { return 1.0f; }).ok());
  ASSERT_TRUE(world.push_and_commit(0).ok());
  ASSERT_TRUE(world.client(0).wait_turn(world.deadline()).ok());
  for (int k = 0; k < 3; ++k) {
    RowsTaken full;
    int batches = 0;
    full.each_batch = [&]() -> absl::Status {
      return ++batches == 2 ? absl::ResourceExhaustedError("the disk is full") : absl::OkStatus();
    };
    const auto info = take_all(world, full);
    EXPECT_EQ(info.status().code(), absl::StatusCode::kResourceExhausted) << info.status();
    EXPECT_EQ(batches, 2) << "nothing is added after the error";
    RowsTaken taken;
    ASSERT_TRUE(take_all(world, taken).ok());
    EXPECT_EQ(taken.rows.size(), 4001u);
  }
  world.end_well();
}

// Rows without an end, in batches of which each server gets a part.
class EndlessRows final : public sparse::RowSource {
 public:
  explicit EndlessRows(int batch) : batch_(batch) {}
  absl::StatusOr<int> next(SavedRows& rows) override {
    const Floats row(kDim);
    for (int k = 0; k < batch_; ++k) rows.append(++id_, 0, 1, 1, row);
    ++asked;
    return each_batch == nullptr ? 0 : each_batch();
  }
  static constexpr std::size_t kDim = 256;
  int asked = 0;
  std::function<absl::StatusOr<int>()> each_batch;  // may be null

 private:
  const int batch_;
  RowId id_ = 0;
};

absl::Status load(ServersWorld& world, sparse::RowSource& rows, std::size_t elements, Duration wait) {
  const Floats weights(elements);
  InitialState state{.weights = weights, .optimizer = {}, .optimizer_steps = 0, .start = {}, .rows = &rows};
  state.start.total_steps = 1;
  return world.client(0).initialize(state, world.deadline(wait));
}

// However fast rows come out of a checkpoint: what the servers have not taken waits there, not in worker 0.
TEST_P(ServersRowsFaults, RowsThatNoServerTakesAreNotReadEither) {
  WorldSpec spec = this->spec({.workers = 1, .servers = 3});
  spec.run_servers = false;
  spec.tables = {table_of("a", EndlessRows::kDim)};
  ServersWorld world(spec);
  EndlessRows rows(100);
  const absl::Status late = load(world, rows, spec.elements, std::chrono::milliseconds(100));
  EXPECT_EQ(late.code(), absl::StatusCode::kDeadlineExceeded) << late;
  EXPECT_THAT(std::string(late.message()), HasSubstr("has taken nothing of the rows for"));
}

// The servers take all at once, so that nothing is ever waited for.
TEST_P(ServersRowsFaults, AnInterruptEndsTheLoadingOfRows) {
  for (const int when : {0, 3}) {
    SCOPED_TRACE(when);
    WorldSpec spec = this->spec({.workers = 1, .tables = {table_of("a", EndlessRows::kDim)}});
    ServersWorld world(spec);
    EndlessRows rows(1);
    rows.each_batch = [&]() -> absl::StatusOr<int> {
      if (rows.asked == when) world.client(0).interrupt();
      if (rows.asked > when + 10) return absl::UnknownError("it goes on");
      return 0;
    };
    if (when == 0) world.client(0).interrupt();
    const absl::Status ended = load(world, rows, spec.elements, std::chrono::seconds(60));
    EXPECT_TRUE(absl::IsCancelled(ended)) << ended;
    EXPECT_EQ(rows.asked, when);
    EXPECT_TRUE(world.client(0).closed().ok());
    for (const absl::Status& result : world.end()) EXPECT_TRUE(result.ok()) << result;
  }
}

// A row that changes before worker 0 has taken it is kept as it was; where that is too much, the next update
// waits for worker 0.
TEST_P(ServersRowsFaults, UpdatesWaitWhileTooMuchIsKeptForASnapshot) {
  WorldSpec spec = this->spec({.servers = 1,
                               .mode = asynchronous(),
                               .tables = {table_of("a", 4)},
                               .row_floats = 100,
                               .max_kept_bytes = 0});
  ServersWorld world(spec, 0);
  WorkerRows rows;
  rows.ids = {{7}};
  const auto work = [&](int w) {
    ASSERT_TRUE(rows.push(world, spec.tables, w, [](int, RowId, std::size_t) { return -1.0f; }).ok());
    ASSERT_TRUE(world.push_and_commit(w).ok());
  };
  for (int w = 0; w < 2; ++w) ASSERT_TRUE(world.client(w).wait_turn(world.deadline()).ok());
  work(1);
  ASSERT_TRUE(world.client(1).wait_turn(world.deadline()).ok());
  ASSERT_TRUE(world.client(0).begin_snapshot().ok());
  Floats weights(spec.elements);
  ASSERT_TRUE(world.client(0).take_snapshot(weights, {}, world.deadline()).ok());
  work(1);  // changes row 7, which is kept as it was
  ASSERT_TRUE(world.client(1).wait_turn(world.deadline()).ok());
  work(1);
  const Deadline limit = world.deadline();
  while (world.server(0).stats().gradients() < 3 && !limit.expired(world.clock().now())) {
    std::this_thread::yield();
  }
  ASSERT_TRUE(rows.pull(world, spec.tables, 0).ok());  // the server has come round since
  EXPECT_EQ(rows.value(0, 0, 4), 2);
  EXPECT_EQ(world.server(0).stats().updates(), 2);
  RowsTaken taken;
  ASSERT_TRUE(world.client(0).take_rows(taken, world.deadline()).ok());
  EXPECT_EQ((taken.rows[{0, 7}].floats[0]), 1);
  ASSERT_TRUE(world.client(1).wait_turn(world.deadline()).ok());
  ASSERT_TRUE(rows.pull(world, spec.tables, 0).ok());
  EXPECT_EQ(rows.value(0, 0, 4), 3);

  // Who goes away holds nobody up.
  ASSERT_TRUE(world.client(0).begin_snapshot().ok());
  ASSERT_TRUE(world.client(0).take_snapshot(weights, {}, world.deadline()).ok());
  work(1);
  ASSERT_TRUE(world.client(1).wait_turn(world.deadline()).ok());
  work(1);
  world.drop_client(0);
  ASSERT_TRUE(world.client(1).wait_turn(world.deadline()).ok());
}

// That a worker is gone may be noticed late, when the log is carried out that waited for a snapshot's rows:
// what that means for the others is said at once, too.
TEST(ServersRowsLosses, AWorkerLostWhileTheLogCatchesUpGivesItsUnitToOneThatWaits) {
  WorldSpec spec;  // shared memory: a UNIX socket can refuse what is sent to it, and seem alive
  spec.optimizer = sgd(1);
  spec.workers = 3;
  spec.servers = 1;
  spec.strangers = {1};
  spec.max_kept_bytes = 0;
  spec.mode.set_synchronization(v1::ParameterServerSpec::ASYNCHRONOUS);
  spec.mode.set_units_per_step(1);
  spec.total_steps = 6;
  spec.tables = {table_of("a", 4)};
  spec.row_floats = 100;
  ServersWorld world(spec);
  const auto wait_for_gradients = [&](std::int64_t count) {
    const Deadline limit = world.deadline();
    while (world.server(0).stats().gradients() < count && !limit.expired(world.clock().now())) {
      std::this_thread::yield();
    }
  };
  ASSERT_TRUE(world.begin(Floats(spec.elements, 0)).ok());
  for (const int w : {0, 2}) ASSERT_TRUE(world.client(w).wait_turn(world.deadline()).ok());
  Stranger stranger(world, spec);
  const Unit unit = stranger.wait_for_turn();

  // Row 7 changes after the snapshot, which keeps it as it was: updates wait from here on.
  WorkerRows rows;
  rows.ids = {{7}};
  const auto work = [&] {
    ASSERT_TRUE(rows.push(world, spec.tables, 2, [](int, RowId, std::size_t) { return -1.0f; }).ok());
    ASSERT_TRUE(world.push_and_commit(2).ok());
  };
  work();
  ASSERT_TRUE(world.client(2).wait_turn(world.deadline()).ok());
  ASSERT_TRUE(world.client(0).begin_snapshot().ok());
  Floats weights(spec.elements);
  ASSERT_TRUE(world.client(0).take_snapshot(weights, {}, world.deadline()).ok());
  work();
  ASSERT_TRUE(world.client(2).wait_turn(world.deadline()).ok());

  // Of six units the stranger gets the last; the others have nothing left to do.
  stranger.hear_nothing_more();
  stranger.commit(unit);
  wait_for_gradients(3);
  work();
  ASSERT_TRUE(world.push_and_commit(0).ok());
  wait_for_gradients(5);
  EXPECT_EQ(world.server(0).stats().updates(), 2);
  world.drop_client(0);
  const TurnResult turn = world.turn(2);
  EXPECT_FALSE(turn.finished);
  EXPECT_TRUE(world.wait_for_loss(0, 1));
  work();
  const TurnResult last = world.turn(2);
  EXPECT_TRUE(last.finished);
  EXPECT_EQ(last.version, 6);
}

}  // namespace
}  // namespace paceline::pserver
