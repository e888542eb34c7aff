#pragma once

// A dashboard that is served: board, API and HTTP server at one address. Thread-safe.

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "controller/dashboard/board.h"
#include "controller/dashboard/gate.h"
#include "controller/dashboard/job_actions.h"
#include "controller/dashboard/place.h"
#include "controller/dashboard/session_gate.h"
#include "controller/web/server_certificate.h"

namespace paceline::dashboard {

struct ServerOptions {
  std::string version;
  std::string user;                     // whose rights a dashboard of the loopback device gives
  std::string address = "127.0.0.1:0";  // port 0: the system's choice
  AskRights rights = nullptr;           // of the process; null: all
  // Null: sessions of whoever has an address of new_address(), for the loopback device alone.
  Gate* gate = nullptr;
  JobActions::Audit audit = nullptr;  // null: none
  web::TlsFiles tls = {};             // given: HTTPS
};

class Server {
 public:
  static constexpr unsigned kStreams = 256, kConnections = 512;

  // Listens at once; errors as web::listen_on(). The references and the gate outlive it; its board is fed by
  // the caller, before and after.
  static absl::StatusOr<std::unique_ptr<Server>> start(Board& board, Place& place,
                                                       const ServerOptions& options, const Clock& clock);
  virtual ~Server() = default;  // ends all connections; waits for actions under way

  virtual int port() const = 0;
  virtual unsigned viewers() const = 0;  // that have a stream open
  // An address that opens the dashboard once: http://127.0.0.1:8080/#token=... REQUIRES: no gate was given.
  virtual std::string new_address() = 0;
};

}  // namespace paceline::dashboard
