#pragma once

// Wide & Deep (Cheng et al. 2016) for categorical fields: the probability of a click is
//   sigmoid(sum of wide weights + MLP(embeddings of all fields, one behind the other)).
// The wide part has a weight for each value of each field and for each combination of values of the fields
// that a cross names; the deep part an embedding for each value. Weights and embeddings are rows of two
// tables, found by 64-bit hashes of (field, value), so that vocabularies need no bounds and no dictionaries;
// rows are made when they are first looked up, and only a batch's rows travel. The MLP is an ordinary dense
// model, which takes the looked-up numbers as inputs and gives their gradients back.

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/paceline/v1/training.pb.h"
#include "runtime/model/model.h"

namespace paceline::model {

inline constexpr std::int64_t kMaxEmbedding = 4096;
inline constexpr std::int64_t kMaxCrosses = 1024;
inline constexpr std::int64_t kMaxCrossFields = 8;

// A table whose rows are looked up by id and trained row by row.
struct TableShape {
  std::string name;  // "wide", "deep"
  std::int64_t width = 0;
  tensor::Init init;  // of a row that nobody has looked up before
};

// The numbers that the rows' layout follows from.
struct WideAndDeepShape {
  std::int64_t fields = 0;
  std::int64_t embedding = 0;
  std::vector<std::vector<std::int64_t>> crosses;  // fields, each in [0, fields), ascending
  std::vector<std::int64_t> vocabularies = {};     // how many values each field has; empty: not known
};

enum : std::size_t { kWideTable = 0, kDeepTable = 1, kTables = 2 };

// The most that so many samples may need: no field has more values than it has or there are samples, and no
// two crosses of a sample are the same.
struct SampleNeeds {
  std::array<std::int64_t, kTables> rows{};  // of each table
  std::int64_t floats = 0;                   // of all these rows
  std::int64_t lookups = 0;                  // occurrences of rows of the wide table, which has more
};
SampleNeeds needs_of(const WideAndDeepShape& shape, std::int64_t samples);

class WideAndDeep final : public Model {
 public:
  explicit WideAndDeep(v1::WideAndDeepSpec spec) : spec_(std::move(spec)) {}

  // Of samples with one token for each field, and one label, 0 or 1. INVALID_ARGUMENT: of other samples, or a
  // cross names a field that they lack.
  absl::StatusOr<WideAndDeepShape> shape(const data::SampleShape& sample) const;
  // In the order of kWideTable, kDeepTable. Wide weights begin at 0; embeddings uniform in [-0.05, 0.05).
  std::vector<TableShape> tables() const;
  // The dense part: layers "fc1", "fc2", ... and "output", over trained_input({fields * embedding}) and
  // offset().
  absl::Status build(tensor::GraphBuilder& graph, const data::SampleShape& sample) const override;

 private:
  const v1::WideAndDeepSpec spec_;
};

// INVALID_ARGUMENT names the field: embedding 1 to 4096; hidden widths >= 1; at most 1024 crosses, each of 2
// to 8 fields >= 0, ascending.
absl::StatusOr<std::unique_ptr<Model>> make_wide_and_deep(const v1::WideAndDeepSpec& spec);

}  // namespace paceline::model
