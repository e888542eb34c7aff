#pragma once

// The dashboard of this machine's runs, while it lives: a thread that notices what changes, and the server.
// Its threads give way to those that train. Destruction ends all connections.

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "cli/state/run_store.h"

namespace paceline::cli {

inline constexpr Duration kEndPatience = std::chrono::seconds(2);

class LocalDashboard {
 public:
  // At a port of 127.0.0.1; 0: the system's choice. UNAVAILABLE: the system's reason.
  static absl::StatusOr<std::unique_ptr<LocalDashboard>> start(const RunStore& store, int port,
                                                               const Clock& clock);
  virtual ~LocalDashboard() = default;

  // Opens it once, in one browser.
  virtual std::string new_address() = 0;
  // Returns when those who look have been sent what is there now; at once where nobody does, and after
  // kEndPatience in any case.
  virtual void show_end() = 0;
};

}  // namespace paceline::cli
