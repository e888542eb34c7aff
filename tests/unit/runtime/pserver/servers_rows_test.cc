// Rows of sparse tables, workers and servers together, over both transports.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "rows_world.h"
#include "runtime/pserver/sparse/sparse_table.h"
#include "tests/support/allocation_counter.h"

namespace paceline::pserver {
namespace {

class ServersRows : public ServersTest {};
INSTANTIATE_TEST_SUITE_P(Media, ServersRows, all_media(), medium_name);

// What a single table, without servers, makes of the same gradients in the order of workers.
struct Reference {
  explicit Reference(const TableSpec& spec) : table(spec, 1) {}
  void update(std::uint64_t seed, Step step, int workers, int t, std::size_t tables) {
    std::vector<std::vector<RowId>> ids;
    std::vector<Floats> gradients;
    std::vector<sparse::GradientRows> parts;
    for (int w = 0; w < workers; ++w) {
      const Unit unit = step * workers + w;
      ids.push_back(ids_of(seed, unit, tables)[static_cast<std::size_t>(t)]);
      gradients.emplace_back();
      for (const RowId id : ids.back()) {
        for (std::size_t k = 0; k < table.spec().dim; ++k)
          gradients.back().push_back(gradient_of(unit, t, id, k));
      }
    }
    for (std::size_t w = 0; w < ids.size(); ++w) parts.push_back({ids[w], gradients[w].data(), nullptr});
    ASSERT_TRUE(table.update(parts, 1, 1).ok());
  }
  sparse::SparseTable table;
};

TEST_P(ServersRows, SynchronousRowsAreThoseOfOneTableBitForBitOnAnyNumberOfServers) {
  const std::vector<TableSpec> tables = some_tables();
  for (int servers = 1; servers <= 3; ++servers) {
    SCOPED_TRACE(servers);
    const std::uint64_t seed = 3;
    WorldSpec spec = this->spec({.workers = 3, .servers = servers, .total_steps = 5});
    spec.optimizer = sgd(0.25);  // the rows' rates are their own
    spec.tables = tables;
    spec.row_floats = 20000;
    std::vector<std::unique_ptr<Reference>> references;
    std::vector<std::vector<Floats>> after;  // by step and table: rows 0 to 399
    std::vector<RowId> all(400);
    for (RowId id = 0; id < all.size(); ++id) all[id] = id;
    const auto remember = [&] {
      after.emplace_back();
      for (auto& each : references) {
        after.back().emplace_back(all.size() * each->table.spec().dim);
        each->table.pull(all, after.back().back().data());
      }
    };
    for (const TableSpec& table : tables) references.push_back(std::make_unique<Reference>(table));
    remember();
    for (Step step = 0; step < spec.total_steps; ++step) {
      for (std::size_t t = 0; t < tables.size(); ++t) {
        references[t]->update(seed, step, spec.workers, static_cast<int>(t), tables.size());
      }
      remember();
    }

    ServersWorld world(spec, 0);
    world.each_worker([&](int w) {
      for (;;) {
        const TurnResult turn = world.turn(w);
        WorkerRows rows;
        rows.ids.assign(tables.size(), all);
        ASSERT_TRUE(rows.pull(world, tables, w).ok());
        for (std::size_t t = 0; t < tables.size(); ++t) {
          const Floats& expected = after[static_cast<std::size_t>(turn.version)][t];
          ASSERT_EQ(std::memcmp(rows.pulled[t].data(), expected.data(), expected.size() * sizeof(float)), 0)
              << "table " << t << " at version " << turn.version;
        }
        if (turn.finished) break;
        rows.ids = ids_of(seed, turn.unit, tables.size());
        ASSERT_TRUE(
            rows.push(world, tables, w,
                      [&](int t, RowId id, std::size_t k) { return gradient_of(turn.unit, t, id, k); })
                .ok());
        ASSERT_TRUE(world.push_and_commit(w).ok());
      }
    });
    world.end_well();
    std::int64_t rows = 0, expected_rows = 0;
    for (int s = 0; s < servers; ++s) rows += world.server(s).stats().rows();
    for (const auto& each : references) expected_rows += static_cast<std::int64_t>(each->table.stats().rows);
    EXPECT_EQ(rows, expected_rows);
  }
}

TEST_P(ServersRows, ClippingIsOfDenseAndSparseGradientsTogether) {
  WorldSpec spec = this->spec({.servers = 3, .elements = 100, .optimizer = sgd(1), .total_steps = 2});
  spec.optimizer.set_clip_norm(5);
  spec.tables = {table_of("a", 4), table_of("b", 1)};
  spec.row_floats = 1000;
  ServersWorld world(spec, 0);
  world.each_worker([&](int w) {
    WorkerRows rows;
    for (;;) {
      const TurnResult turn = world.turn(w);
      // Workers sum to 1 in each of 100 elements, and to 4 in each of 25 rows of 4 and of 50 rows of 1:
      // a squared norm of 100 + 16 * 150 = 2500, so a factor of 5 / 50.
      rows.ids = {std::vector<RowId>(25), std::vector<RowId>(50)};
      for (std::size_t k = 0; k < 25; ++k) rows.ids[0][k] = k * k;
      for (std::size_t k = 0; k < 50; ++k) rows.ids[1][k] = 3 * k;
      ASSERT_TRUE(rows.pull(world, spec.tables, w).ok());
      const float steps = static_cast<float>(turn.version);
      for (std::size_t k = 0; k < 25; ++k) ASSERT_NEAR(rows.value(0, k, 4), -0.4f * steps, 1e-5);
      for (std::size_t k = 0; k < 50; ++k) ASSERT_NEAR(rows.value(1, k, 1), -0.4f * steps, 1e-5);
      for (const float weight : world.weights(w)) ASSERT_NEAR(weight, -0.1f * steps, 1e-5);
      if (turn.finished) break;
      std::fill(world.gradient(w).begin(), world.gradient(w).end(), 0.5f);
      ASSERT_TRUE(rows.push(world, spec.tables, w, [](int, RowId, std::size_t) { return 2.0f; }).ok());
      ASSERT_TRUE(world.push_and_commit(w).ok());
    }
  });
  world.end_well();
}

TEST_P(ServersRows, ADroppedGradientLeavesNoRows) {
  WorldSpec spec = this->spec({.workers = 3, .total_steps = 4});
  spec.mode.set_gradients_per_step(2);
  spec.mode.set_units_per_step(2);
  spec.tables = {table_of("a", 3)};
  spec.tables[0].initializer = {sparse::Initializer::Kind::kUniform, 0.5};
  spec.row_floats = 100;
  ServersWorld world(spec, 0);
  WorkerRows rows;
  rows.ids = {{999}};
  for (int w = 0; w < 3; ++w) ASSERT_TRUE(world.client(w).wait_turn(world.deadline()).ok());
  ASSERT_TRUE(rows.pull(world, spec.tables, 2).ok());
  const Floats initial = rows.pulled[0];
  EXPECT_NE(initial[0], 0.0f);
  const auto ones = [](int, RowId, std::size_t) { return 1.0f; };
  for (const int w : {0, 1}) {
    rows.ids = {{5, static_cast<RowId>(10 + w)}};
    ASSERT_TRUE(rows.push(world, spec.tables, w, ones).ok());
    ASSERT_TRUE(world.push_and_commit(w).ok());
  }
  for (const int w : {0, 1}) ASSERT_TRUE(world.client(w).wait_turn(world.deadline()).ok());
  rows.ids = {{5, 999}};
  ASSERT_TRUE(rows.push(world, spec.tables, 2, ones).ok());
  ASSERT_TRUE(world.push_and_commit(2).ok());
  const TurnResult turn = world.turn(2);
  EXPECT_TRUE(turn.dropped);
  rows.ids = {{999}};
  ASSERT_TRUE(rows.pull(world, spec.tables, 2).ok());
  EXPECT_EQ(rows.pulled[0], initial);
  RowsTaken taken;
  const auto info = take_all(world, taken);
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->version, 1);
  std::set<RowId> ids;
  for (const auto& [key, row] : taken.rows) ids.insert(key.second);
  EXPECT_EQ(ids, (std::set<RowId>{5, 10, 11}));
  EXPECT_EQ((taken.rows[{0, 5}].steps), 1u);
  // The next unit's rows count: nothing of what was dropped is in the way.
  rows.ids = {{999}};
  ASSERT_TRUE(rows.push(world, spec.tables, 2, ones).ok());
  ASSERT_TRUE(world.push_and_commit(2).ok());
  ASSERT_TRUE(world.push_and_commit(0).ok());
  const TurnResult next = world.turn(2);
  EXPECT_FALSE(next.dropped);
  ASSERT_TRUE(rows.pull(world, spec.tables, 2).ok());
  EXPECT_EQ(rows.pulled[0][1], initial[1] - 1);
}

// Two gradients of three make a step: the servers weigh their sum by 3 / 2, for weights and for rows, and the
// norm that is clipped is the weighted one's. All numbers are exact.
TEST_P(ServersRows, AStepOfFewerGradientsIsWeighedByThoseThatCount) {
  // Each of 256 numbers has a sum of 3 + 5: a norm of 128, weighted 192.
  const std::vector<std::pair<double, float>> cases = {
      {0, 12.0f},
      {200, 12.0f},
      {144, 9.0f}};  // clipped at 144: more than the plain norm, less than the other
  for (const auto& [clip_norm, of_a_step] : cases) {
    SCOPED_TRACE(clip_norm);
    WorldSpec spec = this->spec({.workers = 3, .servers = 3, .elements = 100, .slice_bytes = 64});
    spec.mode.set_gradients_per_step(2);
    spec.mode.set_units_per_step(3);
    spec.optimizer = sgd(1);
    spec.optimizer.set_clip_norm(clip_norm);
    spec.tables = {table_of("a", 4), table_of("b", 1)};
    spec.row_floats = 1000;
    ServersWorld world(spec, 0);
    WorkerRows rows;
    rows.ids = {std::vector<RowId>(25), std::vector<RowId>(56)};
    for (std::size_t k = 0; k < 25; ++k) rows.ids[0][k] = k * k;
    for (std::size_t k = 0; k < 56; ++k) rows.ids[1][k] = 3 * k;
    const auto take_turn = [&, of_a_step = of_a_step](int w, bool dropped) {
      const TurnResult turn = world.turn(w);
      ASSERT_EQ(turn.dropped, dropped);
      ASSERT_TRUE(rows.pull(world, spec.tables, w).ok());
      const float expected = -of_a_step * static_cast<float>(turn.version);
      for (const float weight : world.weights(w)) ASSERT_EQ(weight, expected);
      for (std::size_t k = 0; k < 25; ++k) ASSERT_EQ(rows.value(0, k, 4), expected);
      for (std::size_t k = 0; k < 56; ++k) ASSERT_EQ(rows.value(1, k, 1), expected);
    };
    const auto give = [&](int w, float value) {
      std::fill(world.gradient(w).begin(), world.gradient(w).end(), value);
      ASSERT_TRUE(rows.push(world, spec.tables, w, [&](int, RowId, std::size_t) { return value; }).ok());
      ASSERT_TRUE(world.push_and_commit(w).ok());
    };
    for (int w = 0; w < 3; ++w) ASSERT_NO_FATAL_FAILURE(take_turn(w, false));
    ASSERT_NO_FATAL_FAILURE(give(1, 3));
    ASSERT_NO_FATAL_FAILURE(give(0, 5));
    for (const int w : {0, 1}) ASSERT_NO_FATAL_FAILURE(take_turn(w, false));
    ASSERT_NO_FATAL_FAILURE(give(2, 1000));  // of the step before
    ASSERT_NO_FATAL_FAILURE(take_turn(2, true));
    ASSERT_NO_FATAL_FAILURE(give(2, 3));
    ASSERT_NO_FATAL_FAILURE(give(0, 5));
    for (const int w : {0, 2}) ASSERT_NO_FATAL_FAILURE(take_turn(w, false));
    EXPECT_EQ(world.weights(0)[0], -2 * of_a_step) << "two updates";
  }
}

TEST_P(ServersRows, ServersTellOfTheirRows) {
  WorldSpec spec =
      this->spec({.workers = 1, .total_steps = 20, .tables = {table_of("wide", 1), table_of("deep", 2)}});
  spec.tables[0].bound.max_rows = 6;  // on two servers: 3 each
  spec.row_floats = 100;
  ServersWorld world(spec, 0);
  WorkerRows rows;
  for (int k = 0;; ++k) {
    const TurnResult turn = world.turn(0);
    if (turn.finished) break;
    rows.ids = {{static_cast<RowId>(100 + k)}, {42, static_cast<RowId>(100 + k)}};
    ASSERT_TRUE(rows.pull(world, spec.tables, 0).ok());
    ASSERT_TRUE(rows.push(world, spec.tables, 0, [](int, RowId, std::size_t) { return 1.0f; }).ok());
    ASSERT_TRUE(world.push_and_commit(0).ok());
  }
  world.end_well();
  std::int64_t all = 0, hits = 0, misses = 0, created = 0, evicted = 0;
  int found = 0;
  for (int s = 0; s < spec.servers; ++s) {
    const v1::ServerStats stats = world.server(s).stats();
    all += stats.rows();
    hits += stats.row_hits();
    misses += stats.row_misses();
    created += stats.rows_created();
    evicted += stats.rows_evicted();
    EXPECT_GT(stats.row_bytes(), 0u);
    EXPECT_LE(stats.hottest_size(), 8);
    if (stats.hottest(0).id() != 42) continue;
    ++found;
    EXPECT_EQ(stats.hottest(0).table(), "deep");
    EXPECT_EQ(stats.hottest(0).pulls(), 20);
  }
  EXPECT_EQ(found, 1) << "the server that has row 42 says so";
  EXPECT_EQ(hits, 19) << "row 42, after its first update";
  EXPECT_EQ(misses, 41);
  EXPECT_EQ(created, 41);
  EXPECT_EQ(all, 6 + 21);
  EXPECT_EQ(evicted, 14);
}

TEST_P(ServersRows, NothingIsAllocatedAfterTheFirstSteps) {
  for (const int servers : {1, 2}) {
    SCOPED_TRACE(servers);
    WorldSpec spec = this->spec({.servers = servers,
                                 .total_steps = 40,
                                 .tables = {table_of("wide", 1), table_of("deep", 16)},
                                 .row_floats = 10000});
    ServersWorld world(spec, 0);
    std::vector<WorkerRows> rows(2);
    for (std::size_t w = 0; w < 2; ++w) {
      Rng rng(w, 1);
      rows[w].ids = {random_ids(rng, 400, 5000), random_ids(rng, 400, 5000)};
      rows[w].pulled.resize(2);
      for (std::size_t t = 0; t < 2; ++t) {
        rows[w].pulled[t].resize(rows[w].ids[t].size() * spec.tables[t].dim);
        rows[w].pulls.push_back({static_cast<int>(t), rows[w].ids[t], rows[w].pulled[t]});
        const auto gradient = world.row_gradient(static_cast<int>(w)).subspan(7000 * t);
        rows[w].pushes.push_back(
            {static_cast<int>(t), rows[w].ids[t], gradient.first(rows[w].pulled[t].size())});
      }
    }
    std::int64_t by_workers = 0, by_all = 0;
    for (Step step = 0; step < spec.total_steps; ++step) {
      const std::int64_t all = allocations_of_all_threads();
      const std::int64_t workers = allocations_of_this_thread();
      for (int w = 0; w < 2; ++w) {
        auto& mine = rows[static_cast<std::size_t>(w)];
        ASSERT_TRUE(world.client(w).wait_turn(world.deadline()).ok());
        ASSERT_TRUE(world.client(w).pull_rows(mine.pulls, world.deadline()).ok());
      }
      for (int w = 0; w < 2; ++w) {
        ASSERT_TRUE(world.client(w).push_rows(rows[static_cast<std::size_t>(w)].pushes).ok());
        ASSERT_TRUE(world.push_and_commit(w).ok());
      }
      if (step < 10) continue;
      by_workers += allocations_of_this_thread() - workers;
      by_all += allocations_of_all_threads() - all;
    }
    EXPECT_EQ(by_workers, 0);
    EXPECT_LE(by_all, 30 * 2 * 12) << "the policy's answers";
  }
}

}  // namespace
}  // namespace paceline::pserver
