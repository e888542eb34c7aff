#pragma once

// Sparse tables in the worlds of servers_world.h: tables by few words, rows from a list and into a map, and a
// worker's hands for rows.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "runtime/pserver/row_messages.h"
#include "servers_world.h"

namespace paceline::pserver {

using sparse::RowId;
using sparse::RowOptimizer;
using sparse::SavedRows;
using sparse::TableSpec;

// SGD with a rate of 1 and rows that begin with zeros: sums of integers are exact.
inline TableSpec table_of(const std::string& name, std::size_t dim) {
  TableSpec spec;
  spec.name = name;
  spec.dim = dim;
  spec.seed = 7 + dim;
  spec.optimizer.learning_rate = 1;
  return spec;
}

inline std::vector<RowId> random_ids(Rng& rng, std::size_t most, std::uint64_t below) {
  std::set<RowId> ids;
  for (std::size_t k = rng.below(most + 1); k > 0; --k) ids.insert(rng.below(below));
  return {ids.begin(), ids.end()};
}

// One table of each optimiser, with initial rows of each kind.
inline std::vector<TableSpec> some_tables() {
  std::vector<TableSpec> tables;
  for (const auto kind : {RowOptimizer::Kind::kSgd, RowOptimizer::Kind::kAdagrad, RowOptimizer::Kind::kAdam,
                          RowOptimizer::Kind::kFtrl}) {
    TableSpec spec = table_of("t" + std::to_string(tables.size()), 1 + 5 * tables.size());
    spec.optimizer.kind = kind;
    spec.optimizer.learning_rate = 0.1;
    spec.optimizer.momentum = kind == RowOptimizer::Kind::kSgd ? 0.9 : 0;
    spec.initializer = {static_cast<sparse::Initializer::Kind>(tables.size() % 3), 0.5};
    tables.push_back(spec);
  }
  return tables;
}

inline std::vector<std::vector<RowId>> ids_of(std::uint64_t seed, Unit unit, std::size_t tables) {
  Rng rng(seed, 90 + static_cast<std::uint64_t>(unit));
  std::vector<std::vector<RowId>> ids;
  for (std::size_t t = 0; t < tables; ++t) ids.push_back(random_ids(rng, 300, 400));
  return ids;
}

inline float gradient_of(Unit unit, int table, RowId id, std::size_t k) {
  Rng rng(static_cast<std::uint64_t>(unit) * 31 + id, static_cast<std::uint64_t>(table) * 100 + k);
  return rng.normal();
}

// What a sink was given: rows by table and id, with all that is kept of them.
struct RowsTaken final : sparse::RowSink {
  struct Row {
    std::int64_t last = 0;
    std::uint32_t uses = 0, steps = 0;
    std::vector<float> floats;
    bool operator==(const Row&) const = default;
  };
  std::map<std::pair<int, RowId>, Row> rows;
  std::map<std::pair<int, int>, std::uint64_t> promised;  // by table and server
  std::map<std::pair<int, int>, std::uint64_t> came;
  std::set<std::int64_t> clocks;
  std::size_t largest = 0;                   // batch, in rows
  std::function<absl::Status()> each_batch;  // may be null

  absl::Status begin(int table, int server, std::uint64_t count, std::int64_t clock) override {
    EXPECT_TRUE(came.empty()) << "all begin before anything comes";
    EXPECT_TRUE(promised.emplace(std::pair(table, server), count).second) << "once";
    clocks.insert(clock);
    return absl::OkStatus();
  }
  absl::Status add(int table, int server, const SavedRows& batch) override {
    const std::size_t floats = batch.floats.size() / batch.size();
    largest = std::max(largest, batch.size());
    came[{table, server}] += batch.size();
    for (std::size_t k = 0; k < batch.size(); ++k) {
      const float* const from = batch.floats.data() + k * floats;
      const bool fresh =
          rows.emplace(std::pair(table, batch.ids[k]),
                       Row{batch.last[k], batch.uses[k], batch.steps[k], {from, from + floats}})
              .second;
      EXPECT_TRUE(fresh) << "row " << batch.ids[k] << " of table " << table << " comes twice";
    }
    return each_batch == nullptr ? absl::OkStatus() : each_batch();
  }
  // As many as were promised.
  void check_counts() const {
    for (const auto& [part, count] : promised) {
      const auto at = came.find(part);
      EXPECT_EQ(at == came.end() ? 0 : at->second, count)
          << "table " << part.first << ", server " << part.second;
    }
  }
};

// Gives rows of a RowsTaken, some at a time.
class RowsGiven final : public sparse::RowSource {
 public:
  RowsGiven(const RowsTaken& from, std::size_t batch)
      : at_(from.rows.begin()), end_(from.rows.end()), batch_(batch) {}
  absl::StatusOr<int> next(SavedRows& rows) override {
    const int table = at_ == end_ ? 0 : at_->first.first;
    for (; at_ != end_ && at_->first.first == table && rows.size() < batch_; ++at_) {
      const RowsTaken::Row& row = at_->second;
      rows.append(at_->first.second, row.last, row.uses, row.steps, row.floats);
    }
    return table;
  }

 private:
  std::map<std::pair<int, RowId>, RowsTaken::Row>::const_iterator at_, end_;
  const std::size_t batch_;
};

// Rows of some tables, that one worker pulls or pushes.
struct WorkerRows {
  std::vector<std::vector<RowId>> ids;     // by table
  std::vector<std::vector<float>> pulled;  // likewise
  std::vector<sparse::RowsPull> pulls;
  std::vector<sparse::RowsPush> pushes;

  absl::Status pull(ServersWorld& world, const std::vector<TableSpec>& tables, int w,
                    Duration wait = std::chrono::seconds(60)) {
    pulls.clear();
    pulled.resize(ids.size());
    for (std::size_t t = 0; t < ids.size(); ++t) {
      pulled[t].assign(ids[t].size() * tables[t].dim, -77.0f);
      pulls.push_back({static_cast<int>(t), ids[t], pulled[t]});
    }
    return world.client(w).pull_rows(pulls, world.deadline(wait));
  }
  // value(table, id, element) is what the gradient has there.
  template <typename Value>
  absl::Status push(ServersWorld& world, const std::vector<TableSpec>& tables, int w, Value value) {
    pushes.clear();
    std::size_t used = 0;
    for (std::size_t t = 0; t < ids.size(); ++t) {
      const std::size_t dim = tables[t].dim;
      const std::span<float> to = world.row_gradient(w).subspan(used, ids[t].size() * dim);
      for (std::size_t k = 0; k < to.size(); ++k) {
        to[k] = value(static_cast<int>(t), ids[t][k / dim], k % dim);
      }
      used += to.size();
      pushes.push_back({static_cast<int>(t), ids[t], to});
    }
    return world.client(w).push_rows(pushes);
  }
  // All rows of a table are one value each.
  float value(std::size_t t, std::size_t k, std::size_t dim) const {
    const float* const row = pulled[t].data() + k * dim;
    EXPECT_EQ(std::count(row, row + dim, *row), static_cast<std::ptrdiff_t>(dim)) << "row " << ids[t][k];
    return *row;
  }
};

// Begins, takes and checks a snapshot with its rows.
inline absl::StatusOr<SnapshotInfo> take_all(ServersWorld& world, RowsTaken& rows) {
  std::vector<float> weights(world.layout().elements);
  const absl::Status begun = world.client(0).begin_snapshot();
  if (!begun.ok()) return begun;
  auto info = world.client(0).take_snapshot(weights, {}, world.deadline());
  if (!info.ok()) return info;
  const absl::Status taken = world.client(0).take_rows(rows, world.deadline());
  if (!taken.ok()) return taken;
  rows.check_counts();
  return info;
}

}  // namespace paceline::pserver
