#pragma once

// For an evaluation beside the training: the rows that the held-out samples need, and no others, out of a
// checkpoint whose tables may be larger than memory. Rows that it lacks are what the initialiser makes. One
// thread.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/data/dataset.h"
#include "runtime/model/wide_and_deep.h"
#include "runtime/pserver/sparse/rows.h"

namespace paceline::trainer {

class CheckpointRows {
 public:
  // Goes over all samples once, to know which rows they need. The data set's errors. RESOURCE_EXHAUSTED:
  // there is no memory for their rows.
  static absl::StatusOr<std::unique_ptr<CheckpointRows>> open(const data::Dataset& samples,
                                                              const model::WideAndDeepShape& shape,
                                                              std::vector<pserver::sparse::TableSpec> specs);

  // Takes the rows of another checkpoint. `go_on` is asked between batches: its error is the result, or the
  // source's.
  absl::Status load(pserver::sparse::RowSource& source, const std::function<absl::Status()>& go_on);

  // As pserver::Client::pull_rows(). REQUIRES: rows of the samples.
  absl::Status pull(std::span<const pserver::sparse::RowsPull> pulls) const;

 private:
  struct Table {
    pserver::sparse::TableSpec spec;
    std::vector<pserver::sparse::RowId> ids;  // rising
    std::vector<float> rows;                  // dim for each
  };
  explicit CheckpointRows(std::vector<pserver::sparse::TableSpec> specs);
  absl::Status find_ids(const data::Dataset& samples, const model::WideAndDeepShape& shape);

  std::vector<Table> tables_;
};

}  // namespace paceline::trainer
