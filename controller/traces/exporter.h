#pragma once

// Sends recoveries to a receiver of OTLP over HTTP, and never holds up who tells of them. Thread-safe; one
// thread of its own.
//
// Bounds: kMostWaiting recoveries wait; further ones are left out, and counted. A receiver that does not
// answer is asked again, after kPause, until it takes them; one that refuses them (4xx) loses them. The log
// says once what is wrong, and once that it is over, and how many recoveries were left out.

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/guarded.h"
#include "base/log.h"
#include "controller/api/status.h"
#include "controller/cluster/kube/transport.h"
#include "controller/traces/recovery.h"
#include "controller/traces/settings.h"

namespace paceline::traces {

inline constexpr std::size_t kMostWaiting = 256;
inline constexpr Duration kPause = std::chrono::seconds(5);
inline constexpr Duration kTry = std::chrono::seconds(3);  // of one request

class Exporter {
 public:
  // Null: the environment asks for none. INVALID_ARGUMENT: it asks for what is not there.
  static absl::StatusOr<std::unique_ptr<Exporter>> from_environment(const Variables& variable,
                                                                    const Clock& clock, Logger log);
  Exporter(Settings settings, std::unique_ptr<kube::Transport> transport, const Clock& clock, Logger log);
  // Tries for a last time to send those that wait: within 2 * kTry.
  ~Exporter();

  // Its first step was applied just now.
  void add(std::string ns, std::string job, std::string uid, const api::ViewChange& change);

 private:
  struct State {
    std::vector<Recovery> waiting;
    std::size_t left_out = 0;
    bool ends = false;
  };

  void run();
  // False: to be sent again.
  bool send(const std::vector<Recovery>& recoveries);
  void tell(const std::string& trouble);

  const Settings settings_;
  const std::unique_ptr<kube::Transport> transport_;
  const Clock& clock_;
  const Logger log_;
  std::string told_;  // the thread's
  Guarded<State> state_;
  std::jthread thread_;
};

}  // namespace paceline::traces
