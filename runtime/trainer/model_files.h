#pragma once

// The final model in a folder (docs/checkpoints.md): model.safetensors has the dense parameters, and
// table-<name>.safetensors beside it the rows of each sparse table. A file is replaced atomically, several
// are not: a crash meanwhile may leave files of two models. So each says in its metadata of which training
// step it is, and the hash of the dense weights there, and whoever reads takes only files that say the same.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/checkpoint/file_store.h"
#include "runtime/checkpoint/safetensors_file.h"
#include "runtime/pserver/sparse/rows.h"

namespace paceline::trainer {

using checkpoint::kModelFile;

// Of what moment of a training a model is.
struct ModelStamp {
  std::int64_t step = 0;
  std::uint64_t weights_hash = 0;  // of the dense weights (base/vector_hash.h)
  bool operator==(const ModelStamp&) const = default;
};

// Gives all rows of the tables to the sink.
using TakeRows = std::function<absl::Status(pserver::sparse::RowSink& rows)>;

// Writes all files, and then puts them in the places of the old ones, model.safetensors last; its path.
// `take` is not asked where there are no tables. Errors, before which nothing was replaced, are those of
// `take`, the sink's (table_parts.h) and the store's; where replacing fails, the folder may hold files of
// both models.
absl::StatusOr<std::string> write_model_files(checkpoint::FileStore& files, const std::string& folder,
                                              const ModelStamp& stamp,
                                              std::span<const checkpoint::TensorView> dense,
                                              const std::vector<pserver::sparse::TableSpec>& tables,
                                              const TakeRows& take);

// One thread; outlives the store.
class ModelReader {
 public:
  // NOT_FOUND: there is no model.safetensors. DATA_LOSS: a table's file is missing, or damaged, or of another
  // moment, with what each file says of itself and what to do.
  static absl::StatusOr<std::unique_ptr<ModelReader>> open(const checkpoint::FileStore& files,
                                                           const std::string& folder);
  ~ModelReader();

  const ModelStamp& stamp() const { return stamp_; }
  const checkpoint::LoadedTensors& dense() const { return dense_; }

  struct Table {
    std::string name;
    std::size_t dim = 0;
    std::uint64_t rows = 0;
  };
  std::span<const Table> tables() const { return tables_; }
  // Some rows of one of the tables, some MiB at a time, and which table that is: ids, and dim floats for
  // each. None: all of all tables were read.
  struct Rows {
    std::vector<std::uint64_t> ids;
    std::vector<float> weights;
  };
  absl::StatusOr<std::size_t> next(Rows& rows);

 private:
  struct File;
  ModelReader();
  absl::Status open_tables(const checkpoint::FileStore& files, const std::string& folder);

  ModelStamp stamp_;
  checkpoint::LoadedTensors dense_;
  std::vector<Table> tables_;
  std::vector<File> files_;  // of the tables
  std::size_t table_ = 0;    // the one that is read
};

}  // namespace paceline::trainer
