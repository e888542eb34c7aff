#pragma once

// What a sparse table is: rows of `dim` floats under 64-bit ids, which come into being when they are first
// trained (docs/parameter-servers.md, "Sparse tables"). Pure.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace paceline::pserver::sparse {

using RowId = std::uint64_t;  // any value: usually a hash of the field and its category

// What a row holds before its first gradient: a function of the initialiser, the table's seed and the row's
// id alone, so that it depends neither on the order of arrival nor on the servers.
struct Initializer {
  enum class Kind : std::uint8_t { kZero = 0, kUniform = 1, kNormal = 2 };
  Kind kind = Kind::kZero;
  double scale = 0;  // kUniform: in [-scale, scale); kNormal: the standard deviation, around 0
  bool operator==(const Initializer&) const = default;
};

// How a row takes a gradient. Only the rows of an update are touched: nothing happens to the others, which is
// what makes Adam lazy. `learning_rate` is multiplied by what the schedule makes of the job's own rate, as a
// fraction of it; FTRL's alpha is not.
struct RowOptimizer {
  enum class Kind : std::uint8_t { kSgd = 0, kAdagrad = 1, kAdam = 2, kFtrl = 3 };
  Kind kind = Kind::kSgd;
  double learning_rate = 0;  // FTRL: alpha
  double momentum = 0;       // SGD
  double beta1 = 0.9;        // Adam; the bias correction counts the row's own updates
  double beta2 = 0.999;
  double epsilon = 1e-8;  // Adam, Adagrad
  double beta = 1;        // FTRL
  double l1 = 0;          // FTRL: a weight whose |z| stays within it is 0
  double l2 = 0;
  bool operator==(const RowOptimizer&) const = default;
};

// How many rows there may be, over all servers, and which one goes when a new one needs its place.
struct RowBound {
  enum class Evict : std::uint8_t {
    kLeastRecent = 0,    // by age: updates since its last gradient
    kLeastFrequent = 1,  // by its count of gradients, which fades
  };
  std::uint64_t max_rows = 0;  // 0: no bound
  Evict evict = Evict::kLeastRecent;
  bool operator==(const RowBound&) const = default;
};

struct TableSpec {
  std::string name;  // unique in a job: letters, digits, '-', '_' and '.'
  std::size_t dim = 0;
  std::uint64_t seed = 0;  // of the initialiser; tables of one job have different ones
  Initializer initializer;
  RowOptimizer optimizer;
  RowBound bound;
  bool operator==(const TableSpec&) const = default;
};

inline constexpr std::size_t kMaxTables = 64;
inline constexpr std::size_t kMaxTableName = 64;
inline constexpr std::size_t kMaxDim = 4096;
inline constexpr std::size_t kMaxRowsPerCall = std::size_t{1} << 18;    // of one pull or push of one table
inline constexpr std::size_t kMaxFloatsPerCall = std::size_t{1} << 26;  // ... of all tables, in floats

// INVALID_ARGUMENT names the table and the field that is out of range, with what is allowed.
absl::Status check(const TableSpec& spec);
// The same of all, and: names are unique, no more than kMaxTables.
absl::Status check(std::span<const TableSpec> specs);

// Vectors of optimiser state beside a row's weights, each `dim` long, by name: "momentum"; "sum" (Adagrad);
// "exp_avg", "exp_avg_sq" (Adam); "z", "n" (FTRL).
std::vector<std::string> state_names(const RowOptimizer& optimizer);
// Weights and optimiser state of one row.
std::size_t row_floats(const TableSpec& spec);

}  // namespace paceline::pserver::sparse
