#include "runtime/trainer/checkpoint_rows.h"

#include <algorithm>
#include <new>
#include <numeric>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "runtime/model/wide_and_deep_batch.h"
#include "runtime/pserver/sparse/initializer.h"
#include "runtime/trainer/sparse_rows.h"

namespace paceline::trainer {

namespace {

using pserver::sparse::RowId;
using pserver::sparse::SavedRows;
using pserver::sparse::TableSpec;

constexpr std::int64_t kMostSamples = 256;            // at a time
constexpr std::size_t kSlack = std::size_t{1} << 16;  // ids that come again, before they are sorted out

void keep_each_once(std::vector<RowId>& ids) {
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
}

}  // namespace

CheckpointRows::CheckpointRows(std::vector<TableSpec> specs) {
  for (TableSpec& spec : specs) tables_.push_back({std::move(spec), {}, {}});
}

absl::StatusOr<std::unique_ptr<CheckpointRows>> CheckpointRows::open(const data::Dataset& samples,
                                                                     const model::WideAndDeepShape& shape,
                                                                     std::vector<TableSpec> specs) {
  PL_CHECK(specs.size() == model::kTables, "the tables are the model's");
  std::unique_ptr<CheckpointRows> rows(new CheckpointRows(std::move(specs)));
  try {
    PL_RETURN_IF_ERROR(rows->find_ids(samples, shape));
    for (Table& table : rows->tables_) table.rows.resize(table.ids.size() * table.spec.dim);
  } catch (const std::bad_alloc&) {
    std::string found;
    for (const Table& table : rows->tables_) {
      found += str_cat(found.empty() ? "" : ", ", table.ids.size(), " rows of ", table.spec.dim,
                       " floats of the table ", table.spec.name);
    }
    return absl::ResourceExhaustedError(
        str_cat("no memory for the rows that ", samples.size(), " held-out samples need, by now ", found,
                "; hold fewer samples out, or give the evaluator more memory"));
  }
  return rows;
}

absl::Status CheckpointRows::find_ids(const data::Dataset& samples, const model::WideAndDeepShape& shape) {
  const std::int64_t most = std::clamp<std::int64_t>(max_samples_of_pull(shape), 1, kMostSamples);
  model::WideAndDeepBatch batch(shape, most);
  std::vector<std::int64_t> indices;
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(most * samples.shape().elements()));
  std::vector<std::int32_t> labels(static_cast<std::size_t>(most * samples.shape().labels));
  std::vector<std::size_t> sorted(tables_.size(), 0);
  for (std::int64_t at = 0; at < samples.size(); at += most) {
    indices.resize(static_cast<std::size_t>(std::min(most, samples.size() - at)));
    std::iota(indices.begin(), indices.end(), at);
    const auto part = [&](std::vector<std::int32_t>& all) {
      return std::span(all).first(indices.size() * all.size() / static_cast<std::size_t>(most));
    };
    const std::span<std::int32_t> used = part(tokens);
    PL_RETURN_IF_ERROR(samples.fetch(indices, 0, {{}, used, part(labels)}));
    batch.look_up(used);
    for (std::size_t t = 0; t < tables_.size(); ++t) {
      std::vector<RowId>& ids = tables_[t].ids;
      ids.insert(ids.end(), batch.ids(t).begin(), batch.ids(t).end());
      if (ids.size() < 2 * sorted[t] + kSlack) continue;
      keep_each_once(ids);
      sorted[t] = ids.size();
    }
  }
  for (Table& table : tables_) keep_each_once(table.ids);
  return absl::OkStatus();
}

absl::Status CheckpointRows::load(pserver::sparse::RowSource& source,
                                  const std::function<absl::Status()>& go_on) {
  for (Table& table : tables_) {
    const std::size_t dim = table.spec.dim;
    for (std::size_t k = 0; k < table.ids.size(); ++k) {
      pserver::sparse::initialize_row(table.spec.initializer, table.spec.seed, table.ids[k],
                                      std::span(table.rows).subspan(k * dim, dim));
    }
  }
  SavedRows saved;
  while (true) {
    PL_RETURN_IF_ERROR(go_on());
    PL_ASSIGN_OR_RETURN(const int number, source.next(saved));
    if (saved.size() == 0) return absl::OkStatus();
    Table& table = tables_[static_cast<std::size_t>(number)];
    const std::size_t dim = table.spec.dim, floats = saved.floats.size() / saved.size();
    for (std::size_t k = 0; k < saved.size(); ++k) {
      const auto found = std::lower_bound(table.ids.begin(), table.ids.end(), saved.ids[k]);
      if (found == table.ids.end() || *found != saved.ids[k]) continue;
      const auto place = static_cast<std::size_t>(found - table.ids.begin());
      std::copy_n(saved.floats.data() + k * floats, dim, table.rows.data() + place * dim);
    }
  }
}

absl::Status CheckpointRows::pull(std::span<const pserver::sparse::RowsPull> pulls) const {
  for (const pserver::sparse::RowsPull& pull : pulls) {
    const Table& table = tables_[static_cast<std::size_t>(pull.table)];
    const std::size_t dim = table.spec.dim;
    auto from = table.ids.begin();  // both rise
    for (std::size_t k = 0; k < pull.ids.size(); ++k) {
      from = std::lower_bound(from, table.ids.end(), pull.ids[k]);
      PL_CHECK(from != table.ids.end() && *from == pull.ids[k], "a row of the held-out samples");
      const auto place = static_cast<std::size_t>(from - table.ids.begin());
      std::copy_n(table.rows.data() + place * dim, dim, pull.rows.data() + k * dim);
    }
  }
  return absl::OkStatus();
}

}  // namespace paceline::trainer
