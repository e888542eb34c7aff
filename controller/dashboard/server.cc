#include "controller/dashboard/server.h"

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/guarded.h"
#include "base/status.h"
#include "base/text.h"
#include "controller/dashboard/answers.h"
#include "controller/dashboard/api.h"
#include "controller/dashboard/assets.h"
#include "controller/dashboard/guard.h"
#include "controller/dashboard/session_gate.h"
#include "controller/web/http_server.h"
#include "controller/web/listen_socket.h"

namespace paceline::dashboard {

namespace {

constexpr web::HttpLimits kLimits{.connections = Server::kConnections,
                                  .makes_room = true,
                                  .streams = Server::kStreams,
                                  .body_bytes = 64 << 10,
                                  .keep_alive = true,
                                  .finish = &add_security_headers};

class ServerImpl final : public Server {
 public:
  ServerImpl(Board& board, Place& place, int port, const ServerOptions& options, const Clock& clock)
      : board_(board),
        port_(port),
        sessions_(options.user, str_cat("paceline_session_", port), options.rights, clock),
        gate_(options.gate == nullptr ? sessions_ : *options.gate),
        api_(board, place, gate_,
             {.version = options.version,
              .hosts = options.gate == nullptr ? loopback_hosts(port) : std::vector<std::string>(),
              .audit = options.audit,
              .assets = embedded_assets()},
             clock, [this] { wake(); }) {}
  ~ServerImpl() override {
    board_.on_news(nullptr);
    http_.reset();  // before the API that it asks, as is the gate
    gate_.close();
  }

  absl::Status serve(web::ListenSocket socket, const web::TlsFiles& tls, const Clock& clock) {
    PL_ASSIGN_OR_RETURN(http_, web::HttpServer::start(
                                   std::move(socket),
                                   [this](web::HttpRequest request, web::Reply reply) {
                                     api_.handle(std::move(request), std::move(reply));
                                   },
                                   kLimits, clock, tls));
    *wake_.lock() = http_->waker();
    board_.on_news(http_->waker());
    return absl::OkStatus();
  }

  int port() const override { return port_; }
  unsigned viewers() const override { return http_->streams(); }
  std::string new_address() override {
    return str_cat("http://127.0.0.1:", port_, "/#token=", sessions_.new_token());
  }

 private:
  void wake() {
    const std::function<void()> wake = *wake_.lock();
    if (wake) wake();
  }

  Board& board_;
  const int port_;
  std::unique_ptr<web::HttpServer> http_;
  Guarded<std::function<void()>> wake_;
  SessionGate sessions_;
  Gate& gate_;
  Api api_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> Server::start(Board& board, Place& place,
                                                      const ServerOptions& options, const Clock& clock) {
  PL_ASSIGN_OR_RETURN(web::ListenSocket socket, web::listen_on(options.address));
  auto server = std::make_unique<ServerImpl>(board, place, socket.port, options, clock);
  PL_RETURN_IF_ERROR(server->serve(std::move(socket), options.tls, clock));
  return server;
}

}  // namespace paceline::dashboard
