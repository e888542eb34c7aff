#pragma once

// Where the lease is kept. Thread-safe.

#include <optional>

#include "absl/status/statusor.h"
#include "controller/lease/election_core.h"

namespace paceline::lease {

class LeaseStore {
 public:
  virtual ~LeaseStore() = default;
  // Nothing: there is none.
  virtual absl::StatusOr<std::optional<Seen>> read() = 0;
  // What stands there now. ABORTED or ALREADY_EXISTS: it is not of write.version any more.
  virtual absl::StatusOr<Seen> write(const ElectionCore::Write& write) = 0;
};

}  // namespace paceline::lease
