#pragma once

// A dashboard that is served: board, API and HTTP server at one address. Thread-safe.

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "controller/dashboard/board.h"
#include "controller/dashboard/place.h"

namespace paceline::dashboard {

class Server {
 public:
  static constexpr unsigned kStreams = 256, kConnections = 512;

  // Listens at a port of 127.0.0.1; 0: the system's choice. UNAVAILABLE: the system's reason. `place` and
  // `clock` outlive it; its board is fed by the caller, before and after.
  static absl::StatusOr<std::unique_ptr<Server>> start(Board& board, Place& place, int port,
                                                       const std::string& version, const Clock& clock);
  virtual ~Server() = default;  // ends all connections; waits for actions under way

  virtual int port() const = 0;
  virtual unsigned viewers() const = 0;  // that have a stream open
  // An address that opens the dashboard once: http://127.0.0.1:8080/#token=...
  virtual std::string new_address() = 0;
};

}  // namespace paceline::dashboard
