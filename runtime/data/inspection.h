#pragma once

// Looks through the samples of files before they are trained on, so that what a training can't use is told
// before its first step, or soon after where there is much of it.

#include <cstdint>
#include <memory>
#include <stop_token>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/data/dataset.h"

namespace paceline::data {

// Above that, a training doesn't wait: it would for more than a second or two.
inline constexpr std::uint64_t kInspectedAtOnceBytes = std::uint64_t{1} << 30;

class FileDataset : public Dataset {
 public:
  // That inspect() reads; 0: there is nothing in them that fetch() could refuse.
  virtual std::uint64_t inspected_bytes() const = 0;
  // The error that fetch() has for the first sample for which it has one; OK where `stop` is asked before.
  virtual absl::Status inspect(const std::stop_token& stop) const = 0;
};

// The same sets, looked through: at once where they have up to `at_once` bytes together, else by a thread
// from now on, which ends with the last of them; once it has found an error, every fetch() of any of them
// returns that.
absl::StatusOr<std::vector<std::shared_ptr<const Dataset>>> inspect(
    std::vector<std::shared_ptr<const FileDataset>> sets, std::uint64_t at_once);

}  // namespace paceline::data
