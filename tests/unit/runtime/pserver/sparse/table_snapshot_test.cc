#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>

#include "base/rng.h"
#include "runtime/pserver/sparse/row_hash.h"
#include "runtime/pserver/sparse/sparse_table.h"

namespace paceline::pserver::sparse {
namespace {

constexpr std::size_t kDim = 3;

TableSpec spec_of(std::uint64_t max_rows) {
  TableSpec spec;
  spec.name = "ads";
  spec.dim = kDim;
  spec.initializer = {Initializer::Kind::kUniform, 1};
  spec.optimizer.kind = RowOptimizer::Kind::kAdam;
  spec.optimizer.learning_rate = 0.1;
  spec.bound.max_rows = max_rows;
  return spec;
}

struct Push {
  std::vector<RowId> ids;
  std::vector<float> gradient;
};

Push some_push(Rng& rng, std::uint64_t below) {
  Push push;
  for (RowId id = 0; id < below; ++id) {
    if (rng.below(20) == 0) push.ids.push_back(id * 31);
  }
  for (std::size_t k = 0; k < push.ids.size() * kDim; ++k) push.gradient.push_back(rng.normal());
  return push;
}

void train(SparseTable& table, const Push& push) {
  const GradientRows parts[] = {{push.ids, push.gradient.data(), nullptr}};
  const absl::Status updated = table.update(parts, 1, 1);
  ASSERT_TRUE(updated.ok()) << updated;
}

struct Row {
  std::int64_t last;
  std::uint32_t uses, steps;
  std::vector<float> floats;
  bool operator==(const Row&) const = default;
};

void put(const SavedRows& rows, std::size_t floats, std::map<RowId, Row>& to) {
  for (std::size_t k = 0; k < rows.size(); ++k) {
    const auto from = rows.floats.begin() + static_cast<std::ptrdiff_t>(k * floats);
    const bool fresh = to.emplace(rows.ids[k], Row{rows.last[k],
                                                   rows.uses[k],
                                                   rows.steps[k],
                                                   {from, from + static_cast<std::ptrdiff_t>(floats)}})
                           .second;
    ASSERT_TRUE(fresh) << "row " << rows.ids[k] << " comes twice";
  }
}

std::map<RowId, Row> all_of(SparseTable& table) {
  std::map<RowId, Row> all;
  SavedRows rows;
  table.begin_snapshot();
  for (table.next_saved(1000, rows); rows.size() > 0; table.next_saved(1000, rows)) {
    put(rows, table.row_floats(), all);
  }
  EXPECT_FALSE(table.snapshot_is_open());
  return all;
}

// Whatever happens between its batches: updates, new rows, evictions, numbers that are used again.
TEST(TableSnapshot, IsOfOneMoment) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed, 0);
    SparseTable table(spec_of(seed % 2 == 0 ? 300 : 0), 1);
    for (int k = 0; k < 20; ++k) train(table, some_push(rng, 800));
    const std::map<RowId, Row> expected = all_of(table);
    ASSERT_EQ(table.begin_snapshot(), expected.size());
    std::map<RowId, Row> found;
    SavedRows rows;
    bool kept = false;
    while (table.snapshot_is_open()) {
      if (rng.below(2) == 0) train(table, some_push(rng, 1200));
      kept = kept || table.kept_bytes() > 0;
      table.next_saved(1 + rng.below(60), rows);
      put(rows, table.row_floats(), found);
    }
    EXPECT_EQ(found, expected);
    EXPECT_TRUE(kept) << "rows were changed before they were given";
    EXPECT_EQ(table.kept_bytes(), 0u);
  }
}

TEST(TableSnapshot, ASecondOneDropsTheFirst) {
  Rng rng(1, 0);
  SparseTable table(spec_of(0), 1);
  for (int k = 0; k < 5; ++k) train(table, some_push(rng, 400));
  SavedRows rows;
  table.begin_snapshot();
  table.next_saved(10, rows);
  train(table, some_push(rng, 400));
  const auto expected = all_of(table);
  EXPECT_EQ(expected.size(), table.stats().rows);
}

// From any number of servers to any other: the rows are the same, and go on alike.
TEST(TableSnapshot, RestoresOnAnotherNumberOfServers) {
  for (const int before : {1, 2, 5}) {
    for (const int after : {1, 3}) {
      Rng rng(static_cast<std::uint64_t>(10 * before + after), 0);
      const auto make = [](int servers) {
        std::deque<SparseTable> tables;
        for (int s = 0; s < servers; ++s) tables.emplace_back(spec_of(0), servers);
        return tables;
      };
      const auto train_all = [](std::deque<SparseTable>& tables, const Push& push) {
        const int servers = static_cast<int>(tables.size());
        for (int s = 0; s < servers; ++s) {
          Push mine;
          for (std::size_t k = 0; k < push.ids.size(); ++k) {
            if (server_of(push.ids[k], servers) != s) continue;
            mine.ids.push_back(push.ids[k]);
            mine.gradient.insert(mine.gradient.end(), &push.gradient[k * kDim],
                                 &push.gradient[k * kDim] + kDim);
          }
          train(tables[static_cast<std::size_t>(s)], mine);
        }
      };
      std::deque<SparseTable> old = make(before), fresh = make(after);
      for (int k = 0; k < 10; ++k) train_all(old, some_push(rng, 500));
      for (SparseTable& table : old) {
        SavedRows rows;
        table.begin_snapshot();
        for (table.next_saved(64, rows); rows.size() > 0; table.next_saved(64, rows)) {
          for (std::size_t k = 0; k < rows.size(); ++k) {
            const auto from = rows.floats.begin() + static_cast<std::ptrdiff_t>(k * table.row_floats());
            const SavedRows one{{rows.ids[k]},
                                {rows.last[k]},
                                {rows.uses[k]},
                                {rows.steps[k]},
                                {from, from + static_cast<std::ptrdiff_t>(table.row_floats())}};
            const absl::Status restored =
                fresh[static_cast<std::size_t>(server_of(rows.ids[k], after))].restore(one);
            ASSERT_TRUE(restored.ok()) << restored;
          }
        }
      }
      for (SparseTable& table : fresh) table.set_clock(old[0].clock());
      for (int k = 0; k < 3; ++k) {
        const Push push = some_push(rng, 700);
        train_all(old, push);
        train_all(fresh, push);
      }
      std::map<RowId, Row> left, right;
      for (SparseTable& table : old) left.merge(all_of(table));
      for (SparseTable& table : fresh) right.merge(all_of(table));
      EXPECT_EQ(left, right);
    }
  }
}

// A row that was last used at a later update than the table has seen would seem touched by it when it comes.
TEST(TableSnapshot, TheClockIsNeverBehindTheRows) {
  SparseTable table(spec_of(0), 1);
  ASSERT_TRUE(table.restore({{7, 8}, {5, 3}, {1, 1}, {1, 1}, std::vector<float>(2 * 3 * kDim)}).ok());
  EXPECT_EQ(table.clock(), 5);
}

TEST(TableSnapshot, ARowThatComesTwiceIsRefused) {
  SparseTable table(spec_of(0), 1);
  const SavedRows rows{{7}, {1}, {1}, {1}, std::vector<float>(3 * kDim)};
  ASSERT_TRUE(table.restore(rows).ok());
  const absl::Status again = table.restore(rows);
  EXPECT_TRUE(absl::IsInvalidArgument(again));
  EXPECT_NE(again.message().find("row 7 comes twice"), std::string_view::npos) << again;
  const SavedRows early{{8}, {-1}, {1}, {1}, std::vector<float>(3 * kDim)};
  EXPECT_TRUE(absl::IsInvalidArgument(table.restore(early)));
}

}  // namespace
}  // namespace paceline::pserver::sparse
