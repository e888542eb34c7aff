#include "controller/dashboard/server.h"

#include <functional>
#include <utility>

#include "base/guarded.h"
#include "base/status.h"
#include "base/text.h"
#include "controller/dashboard/api.h"
#include "controller/dashboard/assets.h"
#include "controller/dashboard/guard.h"
#include "controller/web/http_server.h"
#include "controller/web/listen_socket.h"

namespace paceline::dashboard {

namespace {

constexpr web::HttpLimits kLimits{.connections = Server::kConnections,
                                  .streams = Server::kStreams,
                                  .body_bytes = 64 << 10,
                                  .keep_alive = true};

class ServerImpl final : public Server {
 public:
  ServerImpl(Board& board, Place& place, int port, const std::string& version, const Clock& clock)
      : board_(board),
        port_(port),
        api_(board, place,
             {.version = version,
              .hosts = loopback_hosts(port),
              .cookie = str_cat("paceline_session_", port),
              .assets = embedded_assets()},
             clock, [this] { wake(); }) {}
  ~ServerImpl() override {
    board_.on_news(nullptr);
    http_.reset();  // before the API that it asks
  }

  absl::Status serve(web::ListenSocket socket, const Clock& clock) {
    PL_ASSIGN_OR_RETURN(http_, web::HttpServer::start(
                                   std::move(socket),
                                   [this](web::HttpRequest request, web::Reply reply) {
                                     api_.handle(std::move(request), std::move(reply));
                                   },
                                   kLimits, clock));
    *wake_.lock() = http_->waker();
    board_.on_news(http_->waker());
    return absl::OkStatus();
  }

  int port() const override { return port_; }
  unsigned viewers() const override { return http_->streams(); }
  std::string new_address() override {
    return str_cat("http://127.0.0.1:", port_, "/#token=", api_.new_token());
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
  Api api_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> Server::start(Board& board, Place& place, int port,
                                                      const std::string& version, const Clock& clock) {
  PL_ASSIGN_OR_RETURN(web::ListenSocket socket, web::listen_on(str_cat("127.0.0.1:", port)));
  auto server = std::make_unique<ServerImpl>(board, place, socket.port, version, clock);
  PL_RETURN_IF_ERROR(server->serve(std::move(socket), clock));
  return server;
}

}  // namespace paceline::dashboard
