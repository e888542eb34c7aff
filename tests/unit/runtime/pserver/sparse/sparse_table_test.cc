#include "runtime/pserver/sparse/sparse_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>

#include "base/rng.h"
#include "runtime/pserver/sparse/initializer.h"
#include "runtime/pserver/sparse/row_hash.h"

namespace paceline::pserver::sparse {
namespace {

using Row = std::vector<float>;

TableSpec spec_of(std::size_t dim, RowOptimizer::Kind kind = RowOptimizer::Kind::kSgd) {
  TableSpec spec;
  spec.name = "ads";
  spec.dim = dim;
  spec.seed = 11;
  spec.initializer = {Initializer::Kind::kUniform, 0.5};
  spec.optimizer.kind = kind;
  spec.optimizer.learning_rate = 0.5;
  return spec;
}

std::vector<Row> pull(SparseTable& table, const std::vector<RowId>& ids) {
  const std::size_t dim = table.spec().dim;
  std::vector<float> all(ids.size() * dim);
  table.pull(ids, all.data());
  std::vector<Row> rows;
  for (std::size_t k = 0; k < ids.size(); ++k) {
    rows.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(k * dim),
                      all.begin() + static_cast<std::ptrdiff_t>((k + 1) * dim));
  }
  return rows;
}

// A worker's push.
struct Push {
  std::vector<RowId> ids;
  std::vector<float> gradient;
  GradientRows rows() const { return {ids, gradient.data(), nullptr}; }
};

std::vector<RowId> some_ids(Rng& rng, std::size_t count, std::uint64_t below) {
  std::vector<RowId> ids;
  for (std::size_t k = 0; k < count; ++k) {
    // Squares of uniforms: small ids come often.
    const double u = rng.uniform();
    ids.push_back(static_cast<RowId>(u * u * static_cast<double>(below)) * 7919);
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

Push some_push(Rng& rng, std::size_t count, std::uint64_t below, std::size_t dim, bool integers) {
  Push push{some_ids(rng, count, below), {}};
  for (std::size_t k = 0; k < push.ids.size() * dim; ++k) {
    push.gradient.push_back(integers ? static_cast<float>(static_cast<int>(rng.below(9)) - 4) : rng.normal());
  }
  return push;
}

std::vector<GradientRows> parts_of(const std::vector<Push>& pushes) {
  std::vector<GradientRows> parts;
  for (const Push& each : pushes) parts.push_back(each.rows());
  return parts;
}

// Rows in a map, and the stepper by itself.
class TableOracle {
 public:
  explicit TableOracle(const TableSpec& spec) : spec_(spec), stepper_(spec.optimizer, spec.dim) {}
  void update(const std::vector<Push>& pushes, float factor, double fraction) {
    std::map<RowId, Row> sums;
    for (const Push& push : pushes) {
      for (std::size_t k = 0; k < push.ids.size(); ++k) {
        const auto [at, fresh] = sums.try_emplace(push.ids[k], Row(spec_.dim));
        for (std::size_t d = 0; d < spec_.dim; ++d) {
          const float g = push.gradient[k * spec_.dim + d];
          at->second[d] = fresh ? g : at->second[d] + g;
        }
      }
    }
    stepper_.begin(factor, fraction);
    for (const auto& [id, gradient] : sums) {
      const auto [at, fresh] = rows_.try_emplace(id);
      if (fresh) at->second.floats = initial(id);
      stepper_.step(at->second.floats.data(), gradient.data(), ++at->second.steps);
    }
  }
  Row row(RowId id) {
    const auto found = rows_.find(id);
    Row all = found == rows_.end() ? initial(id) : found->second.floats;
    all.resize(spec_.dim);
    return all;
  }
  std::vector<RowId> ids() const {
    std::vector<RowId> all;
    for (const auto& [id, row] : rows_) all.push_back(id);
    return all;
  }
  bool has(RowId id) const { return rows_.contains(id); }
  void forget(RowId id) { rows_.erase(id); }

 private:
  struct Kept {
    Row floats;
    std::uint32_t steps = 0;
  };
  Row initial(RowId id) {
    Row row(stepper_.row_floats());
    initialize_row(spec_.initializer, spec_.seed, id, std::span(row).first(spec_.dim));
    stepper_.start(row.data());
    return row;
  }
  const TableSpec spec_;
  RowStepper stepper_;
  std::map<RowId, Kept> rows_;
};

// For every kind of optimiser, number of contributors and number of servers: the same bits as rows in a map.
TEST(SparseTable, IsRowsInAMap) {
  std::uint64_t seed = 0;
  for (const auto kind : {RowOptimizer::Kind::kSgd, RowOptimizer::Kind::kAdagrad, RowOptimizer::Kind::kAdam,
                          RowOptimizer::Kind::kFtrl}) {
    for (const int servers : {1, 3}) {
      for (const std::size_t dim : {std::size_t{1}, std::size_t{7}, std::size_t{16}}) {
        SCOPED_TRACE(::testing::Message() << "optimiser " << static_cast<int>(kind) << ", servers " << servers
                                          << ", dim " << dim << ", seed " << ++seed);
        Rng rng(seed, 0);
        const TableSpec spec = spec_of(dim, kind);
        TableOracle oracle(spec);
        std::deque<SparseTable> tables;
        for (int s = 0; s < servers; ++s) tables.emplace_back(spec, servers);
        for (int version = 1; version <= 12; ++version) {
          std::vector<Push> pushes(1 + rng.below(3));
          for (Push& each : pushes) each = some_push(rng, 400, 3000, dim, false);
          oracle.update(pushes, 0.5f, version < 3 ? 0.1 : 1);
          for (int s = 0; s < servers; ++s) {
            std::vector<Push> mine(pushes.size());
            for (std::size_t p = 0; p < pushes.size(); ++p) {
              for (std::size_t k = 0; k < pushes[p].ids.size(); ++k) {
                if (server_of(pushes[p].ids[k], servers) != s) continue;
                mine[p].ids.push_back(pushes[p].ids[k]);
                const auto from = pushes[p].gradient.begin() + static_cast<std::ptrdiff_t>(k * dim);
                mine[p].gradient.insert(mine[p].gradient.end(), from,
                                        from + static_cast<std::ptrdiff_t>(dim));
              }
            }
            SparseTable& table = tables[static_cast<std::size_t>(s)];
            const absl::Status updated = table.update(parts_of(mine), 0.5f, version < 3 ? 0.1 : 1);
            ASSERT_TRUE(updated.ok()) << updated;
          }
          for (const RowId id : some_ids(rng, 200, 6000)) {
            SparseTable& table = tables[static_cast<std::size_t>(server_of(id, servers))];
            ASSERT_EQ(pull(table, {id})[0], oracle.row(id)) << "row " << id << " at " << version;
          }
        }
        std::uint64_t rows = 0;
        for (const SparseTable& table : tables) rows += table.stats().rows;
        EXPECT_EQ(rows, oracle.ids().size());
      }
    }
  }
}

TEST(SparseTable, APullGivesInitialRowsAndCreatesNothing) {
  SparseTable table(spec_of(8), 1);
  const auto rows = pull(table, {0, 5, 0xffffffffffffffff});
  Row initial(8);
  initialize_row(table.spec().initializer, 11, 5, initial);
  EXPECT_EQ(rows[1], initial);
  EXPECT_EQ(table.stats().rows, 0u);
  const Push push{{5}, Row(8)};
  const GradientRows parts[] = {push.rows()};
  ASSERT_TRUE(table.update(parts, 1, 1).ok());
  EXPECT_EQ(pull(table, {5})[0], initial) << "created as it was pulled";
  const TableStats stats = table.stats();
  EXPECT_EQ(stats.rows, 1u);
  EXPECT_EQ(stats.creates, 1u);
  EXPECT_EQ(stats.misses, 3u);
  EXPECT_EQ(stats.hits, 1u);
  EXPECT_GE(stats.bytes, 8 * sizeof(float) + sizeof(RowNote));
}

TEST(SparseTable, SumsInTheOrderOfContributorsAndTellsTheNorm) {
  TableSpec spec = spec_of(1);
  spec.initializer = {};
  spec.optimizer.learning_rate = 1;
  SparseTable table(spec, 1);
  const float big = 1e8f, one = 1;
  const std::vector<Push> pushes = {{{3}, {big}}, {{3, 4}, {one, 2}}, {{3}, {-big}}};
  const auto parts = parts_of(pushes);
  const auto squares = table.gather(parts);
  ASSERT_TRUE(squares.ok()) << squares.status();
  const float sum = (big + one) - big;  // not 1: the order shows
  ASSERT_NE(sum, one);
  EXPECT_EQ(*squares, static_cast<double>(sum) * sum + 4);
  table.step(0.5f, 1);
  EXPECT_EQ(pull(table, {3})[0], Row{-0.5f * sum});
  EXPECT_EQ(pull(table, {4})[0], Row{-1});
}

// Integer gradients: whoever brings them, the sum is the same.
TEST(SparseTable, TheSumIsTheSameHoweverItIsCut) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed, 0);
    const std::vector<Push> pushes = {some_push(rng, 300, 900, 4, true), some_push(rng, 300, 900, 4, true),
                                      some_push(rng, 300, 900, 4, true)};
    std::map<RowId, Row> sums;
    for (const Push& push : pushes) {
      for (std::size_t k = 0; k < push.ids.size(); ++k) {
        Row& sum = sums.try_emplace(push.ids[k], Row(4)).first->second;
        for (std::size_t d = 0; d < 4; ++d) sum[d] += push.gradient[k * 4 + d];
      }
    }
    Push whole;
    for (const auto& [id, sum] : sums) {
      whole.ids.push_back(id);
      whole.gradient.insert(whole.gradient.end(), sum.begin(), sum.end());
    }
    SparseTable one(spec_of(4, RowOptimizer::Kind::kAdam), 1),
        several(spec_of(4, RowOptimizer::Kind::kAdam), 1);
    const GradientRows part[] = {whole.rows()};
    ASSERT_TRUE(one.update(part, 1, 1).ok());
    ASSERT_TRUE(several.update(parts_of(pushes), 1, 1).ok());
    EXPECT_EQ(pull(one, whole.ids), pull(several, whole.ids));
  }
}

TEST(SparseTable, GradientsMayLieAnywhere) {
  TableSpec spec = spec_of(2);
  spec.initializer = {};
  spec.optimizer.learning_rate = 1;
  SparseTable table(spec, 1);
  const std::vector<RowId> ids = {10, 20};
  const std::vector<float> gradient = {1, 2, 3, 4, 5, 6};
  const std::vector<std::uint32_t> places = {2, 0};
  const GradientRows parts[] = {{ids, gradient.data(), places.data()}};
  ASSERT_TRUE(table.update(parts, 1, 1).ok());
  EXPECT_EQ(pull(table, ids), (std::vector<Row>{{-5, -6}, {-1, -2}}));
}

// ---- bounds ----

absl::Status train(SparseTable& table, const std::vector<RowId>& ids) {
  const Push push{ids, Row(ids.size() * table.spec().dim, 1.0f)};
  const GradientRows parts[] = {push.rows()};
  return table.update(parts, 1, 1);
}

bool is_there(SparseTable& table, RowId id) {
  const std::uint64_t hits = table.stats().hits;
  pull(table, {id});
  return table.stats().hits > hits;
}

TEST(SparseTable, TheOldestRowGoesWhereAgeDecides) {
  TableSpec spec = spec_of(2);
  spec.bound = {.max_rows = 4, .evict = RowBound::Evict::kLeastRecent};
  SparseTable table(spec, 1);
  ASSERT_TRUE(train(table, {1, 2, 3, 4}).ok());
  ASSERT_TRUE(train(table, {1, 3, 4}).ok());
  ASSERT_TRUE(train(table, {9}).ok());
  EXPECT_FALSE(is_there(table, 2));
  for (const RowId id : {1, 3, 4, 9}) EXPECT_TRUE(is_there(table, id)) << id;
  Row initial(2);
  initialize_row(spec.initializer, spec.seed, 2, initial);
  EXPECT_EQ(pull(table, {2})[0], initial) << "it begins anew";
  EXPECT_EQ(table.stats().evictions, 1u);
}

TEST(SparseTable, TheRarestRowGoesWhereFrequencyDecides) {
  TableSpec spec = spec_of(2);
  spec.bound = {.max_rows = 3, .evict = RowBound::Evict::kLeastFrequent};
  SparseTable table(spec, 1);
  for (int k = 0; k < 5; ++k) ASSERT_TRUE(train(table, {1, 3}).ok());
  ASSERT_TRUE(train(table, {2}).ok());  // the newest, and the rarest
  ASSERT_TRUE(train(table, {9}).ok());
  EXPECT_FALSE(is_there(table, 2));
  for (const RowId id : {1, 3, 9}) EXPECT_TRUE(is_there(table, id)) << id;
}

TEST(SparseTable, OldFrequencyFades) {
  TableSpec spec = spec_of(1);
  spec.bound = {.max_rows = 2, .evict = RowBound::Evict::kLeastFrequent};
  SparseTable table(spec, 1);
  for (int k = 0; k < 100; ++k) ASSERT_TRUE(train(table, {1}).ok());
  for (RowId id = 10; id < 30 && is_there(table, 1); ++id) {
    for (int k = 0; k < 3; ++k) ASSERT_TRUE(train(table, {id}).ok());
  }
  EXPECT_FALSE(is_there(table, 1));
}

TEST(SparseTable, TheBoundHoldsAndTheWorkIsBounded) {
  for (const auto evict : {RowBound::Evict::kLeastRecent, RowBound::Evict::kLeastFrequent}) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      SCOPED_TRACE(seed);
      Rng rng(seed, 0);
      TableSpec spec = spec_of(3);
      spec.bound = {.max_rows = 1001, .evict = evict};
      SparseTable table(spec, 2);  // 501 of them
      for (int version = 0; version < 200; ++version) {
        const Push push = some_push(rng, 100, 5000, 3, false);
        const GradientRows parts[] = {push.rows()};
        ASSERT_TRUE(table.update(parts, 1, 1).ok());
        ASSERT_LE(table.stats().rows, 501u);
        for (const RowId id : push.ids)
          ASSERT_TRUE(is_there(table, id)) << "rows of the last update are there";
      }
      const TableStats stats = table.stats();
      EXPECT_EQ(stats.creates - stats.evictions, stats.rows);
      EXPECT_GT(stats.evictions, 500u);
    }
  }
}

TEST(SparseTable, ANewRowDoesNotTakeThePlaceOfOneThatTheSameUpdateTrains) {
  for (const auto evict : {RowBound::Evict::kLeastRecent, RowBound::Evict::kLeastFrequent}) {
    for (const std::size_t contributors : {1, 2}) {
      SCOPED_TRACE(::testing::Message() << "rule " << static_cast<int>(evict) << ", " << contributors);
      TableSpec spec = spec_of(1);
      spec.initializer = {};
      spec.bound = {.max_rows = 4, .evict = evict};
      SparseTable table(spec, 1);
      for (int k = 0; k < 8; ++k) ASSERT_TRUE(train(table, {101, 102, 103, 104}).ok());
      const std::vector<Push> pushes = contributors == 1 ? std::vector<Push>{{{1, 101}, {1, 1}}}
                                                         : std::vector<Push>{{{1}, {1}}, {{101}, {1}}};
      ASSERT_TRUE(table.update(parts_of(pushes), 1, 1).ok());
      EXPECT_EQ(pull(table, {1, 101}), (std::vector<Row>{{-0.5f}, {-4.5f}}));
      EXPECT_EQ(table.stats().creates, 5u);
      EXPECT_EQ(table.stats().evictions, 1u);
    }
  }
}

// What is there goes on with its optimiser's state, what is not begins anew, and nothing else is created:
// under both rules, of any number of contributors, also where an update has more rows than the bound.
TEST(SparseTable, WithABoundRowsGoOnAsLongAsTheyAreThere) {
  for (const auto evict : {RowBound::Evict::kLeastRecent, RowBound::Evict::kLeastFrequent}) {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      SCOPED_TRACE(::testing::Message() << "rule " << static_cast<int>(evict) << ", seed " << seed);
      Rng rng(seed, 0);
      TableSpec spec = spec_of(2, RowOptimizer::Kind::kAdam);
      spec.bound = {.max_rows = 60, .evict = evict};
      SparseTable table(spec, 1);
      TableOracle oracle(spec);
      for (int version = 0; version < 100; ++version) {
        std::vector<Push> pushes(1 + rng.below(3));
        for (Push& each : pushes) each = some_push(rng, version % 20 == 19 ? 100 : 12, 300, 2, false);
        std::map<RowId, bool> before;
        for (const Push& push : pushes) {
          for (const RowId id : push.ids) before[id] = oracle.has(id);
        }
        const std::uint64_t created = table.stats().creates;
        ASSERT_TRUE(table.update(parts_of(pushes), 0.5f, 1).ok());
        oracle.update(pushes, 0.5f, 1);
        const auto fresh =
            std::count_if(before.begin(), before.end(), [](const auto& each) { return !each.second; });
        ASSERT_EQ(table.stats().creates - created, static_cast<std::uint64_t>(fresh)) << version;
        for (const RowId id : oracle.ids()) {
          const bool there = is_there(table, id);
          ASSERT_TRUE(there || !before.contains(id)) << "row " << id << " of update " << version;
          if (!there) oracle.forget(id);
          ASSERT_EQ(pull(table, {id})[0], oracle.row(id)) << "row " << id << " at " << version;
        }
        ASSERT_EQ(table.stats().rows, oracle.ids().size());
      }
      EXPECT_GT(table.stats().evictions, 100u);
    }
  }
}

TEST(SparseTable, AnUpdateLargerThanTheBoundIsTakenAndWornDown) {
  TableSpec spec = spec_of(1);
  spec.bound = {.max_rows = 10};
  SparseTable table(spec, 1);
  std::vector<RowId> many(100);
  std::iota(many.begin(), many.end(), RowId{1});
  ASSERT_TRUE(train(table, many).ok());
  EXPECT_EQ(table.stats().rows, 100u);
  for (RowId id = 1000; id < 1100; ++id) ASSERT_TRUE(train(table, {id}).ok());
  EXPECT_LE(table.stats().rows, 10u);
}

}  // namespace
}  // namespace paceline::pserver::sparse
