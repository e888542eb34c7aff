// Snapshots of rows: consistent with the dense weights, streamed, and restored.

#include <gtest/gtest.h>

#include <future>

#include "rows_world.h"

namespace paceline::pserver {
namespace {

class ServersRowsSnapshots : public ServersTest {};
INSTANTIATE_TEST_SUITE_P(Media, ServersRowsSnapshots, all_media(), medium_name);

// Unit u adds 1 to row 7 and creates row 1000 + u; the dense weights count the units.
TEST_P(ServersRowsSnapshots, SnapshotsOfRowsAreOfTheDenseVersionWhileTrainingGoesOn) {
  WorldSpec spec = this->spec({.servers = 3,
                               .elements = 50,
                               .optimizer = sgd(1),
                               .mode = asynchronous(),
                               .total_steps = 150,
                               .tables = {table_of("a", 3), table_of("b", 1)},
                               .row_floats = 100});
  ServersWorld world(spec, 0);
  int compared = 0;
  const auto take = [&](const TurnResult&) {
    Floats weights(spec.elements);
    RowsTaken taken;
    const auto info = world.client(0).take_snapshot(weights, {}, world.deadline());
    ASSERT_TRUE(info.ok()) << info.status();
    ASSERT_TRUE(world.client(0).take_rows(taken, world.deadline()).ok());
    taken.check_counts();
    const auto v = static_cast<float>(info->version);
    EXPECT_EQ(weights[7], v);
    EXPECT_EQ(taken.clocks, std::set<std::int64_t>{info->version});
    std::set<Unit> units;
    for (Unit u = 0; u < info->units.below; ++u) units.insert(u);
    for (const Unit u : info->units.missing) units.erase(u);
    for (int t = 0; t < 2; ++t) {
      if (info->version > 0) {
        EXPECT_EQ((taken.rows[{t, 7}].floats[0]), v);
      }
      for (const Unit u : units) {
        EXPECT_EQ((taken.rows[{t, 1000 + static_cast<RowId>(u)}].floats[0]), 1) << u;
      }
    }
    EXPECT_EQ(taken.rows.size(), info->version > 0 ? 2 * units.size() + 2 : 0);
    ++compared;
  };
  std::vector<WorkerRows> rows(2);
  train_beside_snapshots(world, take, [&](int w, const TurnResult& turn) {
    std::fill(world.gradient(w).begin(), world.gradient(w).end(), -1.0f);
    const RowId own = 1000 + static_cast<RowId>(turn.unit);
    WorkerRows& mine = rows[static_cast<std::size_t>(w)];
    mine.ids = {{7, own}, {7, own}};
    ASSERT_TRUE(mine.push(world, spec.tables, w, [](int, RowId, std::size_t) { return -1.0f; }).ok());
    ASSERT_TRUE(world.push_and_commit(w).ok());
  });
  EXPECT_GE(compared, 1);
  world.end_well();
}

// Adam's rows and all that is kept of them, through a snapshot, from two servers to one and to three.
TEST_P(ServersRowsSnapshots, ASnapshotGoesOnWithAnotherNumberOfServersBitForBit) {
  const std::vector<TableSpec> tables = some_tables();
  WorldSpec spec = this->spec({.workers = 1, .total_steps = 6, .tables = tables, .row_floats = 20000});
  const auto work = [&](ServersWorld& world, Step until) {
    WorkerRows rows;
    for (;;) {
      const TurnResult turn = world.turn(0);
      if (turn.finished || turn.step == until) return;
      rows.ids = ids_of(4, turn.unit, tables.size());
      ASSERT_TRUE(rows.push(world, tables, 0,
                            [&](int t, RowId id, std::size_t k) { return gradient_of(turn.unit, t, id, k); })
                      .ok());
      ASSERT_TRUE(world.push_and_commit(0).ok());
    }
  };
  RowsTaken whole, half;
  SnapshotInfo info;
  {
    ServersWorld world(spec, 0);
    work(world, 3);
    const auto taken = take_all(world, half);
    ASSERT_TRUE(taken.ok()) << taken.status();
    info = *taken;
    EXPECT_EQ(info.step, 3);
  }
  for (const int servers : {2, 1, 3}) {
    SCOPED_TRACE(servers);
    spec.servers = servers;
    ServersWorld world(spec);
    const Floats weights(spec.elements, 0);
    RowsGiven given(half, static_cast<std::size_t>(40 * servers));
    InitialState state;
    state.weights = weights;
    state.optimizer_steps = info.optimizer_steps;
    state.start = {info.units, info.step, spec.total_steps};
    state.rows = &given;
    ASSERT_TRUE(world.client(0).initialize(state, world.deadline()).ok());
    RowsTaken again;
    work(world, 3);
    ASSERT_TRUE(take_all(world, again).ok());
    EXPECT_EQ(again.rows, half.rows);
    EXPECT_EQ(again.clocks, half.clocks);
    // The turn is still this worker's: unit 3 has rows, too.
    WorkerRows rows;
    rows.ids = ids_of(4, 3, tables.size());
    ASSERT_TRUE(
        rows.push(world, tables, 0, [&](int t, RowId id, std::size_t k) { return gradient_of(3, t, id, k); })
            .ok());
    ASSERT_TRUE(world.push_and_commit(0).ok());
    work(world, spec.total_steps);
    RowsTaken end;
    ASSERT_TRUE(take_all(world, end).ok());
    if (whole.rows.empty()) whole = end;
    EXPECT_EQ(end.rows, whole.rows);
    EXPECT_GT(end.rows.size(), half.rows.size());
  }
}

// There is no room for what is kept of rows that change before they are taken.
TEST_P(ServersRowsSnapshots, ALargeTableKeepsNoUpdateOfASmallOneWaiting) {
  constexpr RowId kRows = 4000;
  WorldSpec spec = this->spec({.servers = 1,
                               .mode = asynchronous(),
                               .tables = {table_of("large", 512), table_of("small", 1)},
                               .row_floats = kRows * 512 + 1,
                               .max_kept_bytes = 0,
                               .stall_limit = std::chrono::seconds(10)});
  ServersWorld world(spec, 0);
  for (int w = 0; w < 2; ++w) ASSERT_TRUE(world.client(w).wait_turn(world.deadline()).ok());
  WorkerRows rows;
  const auto work = [&](RowId count) {
    rows.ids = {{}, {7}};
    for (RowId id = 0; id < count; ++id) rows.ids[0].push_back(id);
    ASSERT_TRUE(rows.push(world, spec.tables, 1, [](int, RowId, std::size_t) { return -1.0f; }).ok());
    ASSERT_TRUE(world.push_and_commit(1).ok());
  };
  work(kRows);
  ASSERT_TRUE(world.client(1).wait_turn(world.deadline()).ok());
  Floats weights(spec.elements);
  ASSERT_TRUE(world.client(0).begin_snapshot().ok());
  ASSERT_TRUE(world.client(0).take_snapshot(weights, {}, world.deadline()).ok());
  work(0);  // changes row 7 of the small table, which is kept as it was, ...
  ASSERT_TRUE(world.client(1).wait_turn(world.deadline()).ok());
  work(0);  // ... and this waits until it was taken
  RowsTaken taken;
  int batches = 0;
  taken.each_batch = [&] {
    if (++batches > 1) return absl::OkStatus();
    return world.client(1).wait_turn(world.deadline(std::chrono::seconds(10))).status();
  };
  const absl::Status all = world.client(0).take_rows(taken, world.deadline());
  EXPECT_TRUE(all.ok()) << all;
  EXPECT_EQ(taken.rows.size(), kRows + 1);
  EXPECT_GT(batches, 3);
  EXPECT_EQ((taken.rows[{1, 7}].floats[0]), 1);
}

TEST_P(ServersRowsSnapshots, RowsComeInBatchesOfBoundedSize) {
  WorldSpec spec = this->spec({.workers = 1,
                               .servers = 2,
                               .total_steps = 1,
                               .tables = {table_of("wide", 1), table_of("deep", 1024)}});
  const std::size_t rows_of_deep = 3000;
  spec.row_floats = rows_of_deep * 1024;
  ServersWorld world(spec, 0);
  ASSERT_TRUE(world.client(0).wait_turn(world.deadline()).ok());
  WorkerRows rows;
  rows.ids.resize(2);
  for (RowId id = 0; id < rows_of_deep; ++id) rows.ids[1].push_back(id * 7);
  ASSERT_TRUE(
      rows.push(world, spec.tables, 0, [](int, RowId id, std::size_t) { return -static_cast<float>(id); })
          .ok());
  ASSERT_TRUE(world.push_and_commit(0).ok());
  ASSERT_TRUE(world.client(0).wait_turn(world.deadline()).ok());
  RowsTaken taken;
  ASSERT_TRUE(take_all(world, taken).ok());
  EXPECT_EQ(taken.rows.size(), rows_of_deep);
  EXPECT_EQ((taken.rows[{1, 7 * 2999}].floats[1023]), 7 * 2999);
  EXPECT_LE(taken.largest, kRowsBatchBytes / (1024 * sizeof(float)));
  ASSERT_TRUE(rows.pull(world, spec.tables, 0).ok()) << "after the last turn, too";
  EXPECT_EQ(rows.value(1, 2999, 1024), 7 * 2999);
  world.end_well();
}

}  // namespace
}  // namespace paceline::pserver
