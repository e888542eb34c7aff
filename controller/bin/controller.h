#pragma once

// The whole controller, wired: API client -> informers -> lease -> queue -> reconciler -> web. It takes part
// in the election when its caches are warm. When it leads it lists once more, so that it knows all that the
// leader before it wrote, and then begins to act.
//
// Thread-safe. Owned by main().

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/log.h"
#include "controller/bin/cluster_dashboard.h"
#include "controller/bin/config.h"
#include "controller/cluster/kube/transport.h"
#include "controller/traces/exporter.h"

namespace paceline::controller {

struct ControllerOptions {
  Config config;
  std::string own_ns;    // of the lease, where the configuration names none
  std::string identity;  // of this process, unique for all time
  std::string own_host;  // its address, as members reach it; empty: they only have coordinator.address
  std::uint64_t seed = 1;
  // Over which the lease is read and written: one of its own, so that calls that hang don't hold up a
  // renewal. Null: the same as all else.
  kube::Transport* lease_transport = nullptr;
  // By which the lease is held: one that goes on while the machine is suspended. Null: the same as all else.
  const Clock* election_clock = nullptr;
  // The dashboard's viewers go by it. REQUIRES: not null, where config.dashboard_address names an address.
  TransportOf transport_of = nullptr;
  // Hears of every change of members. Null: no traces are wanted. It must outlive the controller.
  traces::Exporter* traces = nullptr;
  // The lease is lost: the process has to end at once. From a thread of the election.
  std::function<void(const std::string& reason)> on_lost;
};

inline constexpr Duration kDrainTimeout = std::chrono::seconds(10);

class Controller {
 public:
  // Errors: an address that can't be listened on, or settings that don't go together. Nothing is asked of the
  // API server yet; while it can't be reached, the controller is not ready, and goes on trying. The
  // references must outlive it.
  static absl::StatusOr<std::unique_ptr<Controller>> start(ControllerOptions options,
                                                           kube::Transport& transport, const Clock& clock,
                                                           Logger log);
  virtual ~Controller() = default;

  virtual int health_port() const = 0;
  virtual int dashboard_port() const = 0;  // 0: there is none
  virtual bool leads() const = 0;
  // No key is taken any more, those under way are finished within kDrainTimeout, members' streams are ended,
  // the lease is given back. DEADLINE_EXCEEDED: something was still under way. Once.
  virtual absl::Status shut_down() = 0;
};

}  // namespace paceline::controller
