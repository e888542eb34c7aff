#pragma once

// The sparse tables of FakeServers: the product's, one part for each of several servers. Guarded by its
// owner's lock, but for take(), which locks by itself.

#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/status.h"
#include "runtime/pserver/sparse/row_hash.h"
#include "runtime/pserver/sparse/rows.h"
#include "runtime/pserver/sparse/sparse_table.h"

namespace paceline {

class FakeTables {
 public:
  using RowId = pserver::sparse::RowId;
  // What one worker pushed into one table.
  struct Pushed {
    std::vector<RowId> ids;
    std::vector<float> gradient;
  };
  using Push = std::vector<Pushed>;  // by table

  FakeTables() = default;
  FakeTables(const std::vector<pserver::sparse::TableSpec>& specs, int servers) : specs_(specs) {
    for (const auto& spec : specs) {
      auto& parts = tables_.emplace_back();
      for (int s = 0; s < servers; ++s) {
        parts.push_back(std::make_unique<pserver::sparse::SparseTable>(spec, servers));
      }
    }
  }

  bool empty() const { return tables_.empty(); }

  absl::Status pull(std::span<const pserver::sparse::RowsPull> pulls) {
    for (const auto& pull : pulls) {
      PL_RETURN_IF_ERROR(check_rows(specs_, pull.table, pull.ids, pull.rows.size()));
      for (std::size_t k = 0; k < pull.ids.size(); ++k) {
        const std::size_t dim = specs_[static_cast<std::size_t>(pull.table)].dim;
        part(pull.table, pull.ids[k]).pull(pull.ids.subspan(k, 1), pull.rows.data() + k * dim);
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Push> copy(std::span<const pserver::sparse::RowsPush> pushes) const {
    Push copied(tables_.size());
    for (const auto& push : pushes) {
      PL_RETURN_IF_ERROR(check_rows(specs_, push.table, push.ids, push.gradient.size()));
      copied[static_cast<std::size_t>(push.table)] = {{push.ids.begin(), push.ids.end()},
                                                      {push.gradient.begin(), push.gradient.end()}};
    }
    return copied;
  }

  // Of all tables on all servers, in the order of the workers.
  void update(const std::vector<const Push*>& workers, double scale, double fraction) {
    for (std::size_t t = 0; t < tables_.size(); ++t) {
      for (std::size_t s = 0; s < tables_[t].size(); ++s) {
        std::vector<Pushed> own;
        std::vector<std::vector<std::uint32_t>> places;
        for (const Push* push : workers) {
          auto& ids = own.emplace_back().ids;
          auto& at = places.emplace_back();
          const Pushed& pushed = (*push)[t];
          for (std::uint32_t k = 0; k < pushed.ids.size(); ++k) {
            if (server_of(pushed.ids[k]) != s) continue;
            ids.push_back(pushed.ids[k]);
            at.push_back(k);
          }
        }
        std::vector<pserver::sparse::GradientRows> parts;
        for (std::size_t w = 0; w < workers.size(); ++w) {
          parts.push_back({own[w].ids, (*workers[w])[t].gradient.data(), places[w].data()});
        }
        const absl::Status updated = tables_[t][s]->update(parts, static_cast<float>(scale), fraction);
        PL_CHECK(updated.ok(), "an update of rows");
      }
    }
  }

  absl::Status restore(pserver::sparse::RowSource& source) {
    pserver::sparse::SavedRows rows;
    while (true) {
      PL_ASSIGN_OR_RETURN(const int table, source.next(rows));
      if (rows.size() == 0) return absl::OkStatus();
      const std::size_t floats = rows.floats.size() / rows.size();
      for (std::size_t k = 0; k < rows.size(); ++k) {
        const auto begin = rows.floats.begin() + static_cast<std::ptrdiff_t>(k * floats);
        PL_RETURN_IF_ERROR(part(table, rows.ids[k])
                               .restore({{rows.ids[k]},
                                         {rows.last[k]},
                                         {rows.uses[k]},
                                         {rows.steps[k]},
                                         {begin, begin + static_cast<std::ptrdiff_t>(floats)}}));
      }
    }
  }

  void begin_snapshot() {
    announced_.clear();
    for (auto& parts : tables_) {
      for (auto& part : parts) announced_.push_back(part->begin_snapshot());
    }
  }
  // A few rows at a time, the servers by turns. The sink's error.
  absl::Status take(pserver::sparse::RowSink& sink, std::mutex& mutex) {
    const absl::Status given = give(sink, mutex);
    const std::lock_guard lock(mutex);
    for (auto& parts : tables_) {
      for (auto& part : parts) part->end_snapshot();
    }
    return given;
  }

  // Rows and their weights, of all servers. REQUIRES: no snapshot is open.
  std::map<RowId, std::vector<float>> rows(std::size_t table) {
    std::map<RowId, std::vector<float>> all;
    pserver::sparse::SavedRows saved;
    const auto dim = static_cast<std::ptrdiff_t>(specs_[table].dim);
    for (auto& part : tables_[table]) {
      part->begin_snapshot();
      while (part->next_saved(64, saved), saved.size() > 0) {
        for (std::size_t k = 0; k < saved.size(); ++k) {
          const auto begin = saved.floats.begin() + static_cast<std::ptrdiff_t>(k * part->row_floats());
          all[saved.ids[k]] = {begin, begin + dim};
        }
      }
    }
    return all;
  }

 private:
  std::size_t server_of(RowId id) const {
    return static_cast<std::size_t>(pserver::sparse::server_of(id, static_cast<int>(tables_.front().size())));
  }
  pserver::sparse::SparseTable& part(int table, RowId id) {
    return *tables_[static_cast<std::size_t>(table)][server_of(id)];
  }

  absl::Status give(pserver::sparse::RowSink& sink, std::mutex& mutex) {
    constexpr std::size_t kRows = 5;
    std::size_t number = 0;
    for (std::size_t t = 0; t < tables_.size(); ++t) {
      for (std::size_t s = 0; s < tables_[t].size(); ++s) {
        PL_RETURN_IF_ERROR(sink.begin(static_cast<int>(t), static_cast<int>(s), announced_[number++], 0));
      }
    }
    pserver::sparse::SavedRows rows;
    for (std::size_t t = 0; t < tables_.size(); ++t) {
      for (bool more = true; more;) {
        more = false;
        for (std::size_t s = 0; s < tables_[t].size(); ++s) {
          {
            const std::lock_guard lock(mutex);
            tables_[t][s]->next_saved(kRows, rows);
          }
          if (rows.size() == 0) continue;
          more = true;
          PL_RETURN_IF_ERROR(sink.add(static_cast<int>(t), static_cast<int>(s), rows));
        }
      }
    }
    return absl::OkStatus();
  }

  std::vector<pserver::sparse::TableSpec> specs_;
  std::vector<std::vector<std::unique_ptr<pserver::sparse::SparseTable>>> tables_;  // by table and server
  std::vector<std::uint64_t> announced_;                                            // rows of the snapshot
};

}  // namespace paceline
