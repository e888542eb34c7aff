#pragma once

// The dashboard of this machine's runs, while it lives: a thread that notices what changes, and the server.
// Its threads give way to those that train. Destruction ends all connections.

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "cli/state/run_store.h"

namespace paceline::cli {

class LocalDashboard {
 public:
  // At a port of 127.0.0.1; 0: the system's choice. UNAVAILABLE: the system's reason.
  static absl::StatusOr<std::unique_ptr<LocalDashboard>> start(const RunStore& store, int port,
                                                               const Clock& clock);
  virtual ~LocalDashboard() = default;

  // Opens it once, in one browser.
  virtual std::string new_address() = 0;
};

}  // namespace paceline::cli
