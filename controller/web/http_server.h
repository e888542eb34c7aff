#pragma once

// An HTTP/1.1 server over libmicrohttpd, for probes, metrics and the dashboard: whole answers, answers that
// come later, and streams. With a certificate (`tls`) it speaks HTTPS alone: TLS 1.2 and 1.3. Until the files
// are there nobody gets in.
//
// One thread serves all connections and calls handlers and streams, which must not block: what takes longer
// is answered by another thread. Thread-safe. Bounds (HttpLimits): connections (further ones wait, or make
// room), bytes of a request's head and body, and the time from a request's first byte to its answer's last,
// whatever the other side does. A stream has no end of its own; one whose reader takes no byte for
// `slow_reader` is dropped.

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "controller/web/http_message.h"
#include "controller/web/listen_socket.h"
#include "controller/web/server_certificate.h"

namespace paceline::web {

inline constexpr unsigned kMaxConnections = 64;
inline constexpr std::size_t kMaxRequestBytes = 32 << 10;
inline constexpr Duration kConnectionLimit = std::chrono::seconds(10);

struct HttpLimits {
  unsigned connections = kMaxConnections;
  // One more than that: one of the peer that has the most is ended, and the new one served. It is the oldest
  // that waits for its client, if there is one.
  bool makes_room = false;
  unsigned streams = 0;                       // of them at once; further ones get 503
  std::size_t head_bytes = kMaxRequestBytes;  // of a request and of an answer
  std::size_t body_bytes = 0;                 // of a request; more get 413
  // Large answers that are being read: of all, and half of that of one peer, if he has several; further ones
  // get 503.
  std::size_t waiting_bytes = 64 << 20;
  bool keep_alive = false;  // several requests for each connection
  Duration request = kConnectionLimit;
  Duration slow_reader = std::chrono::seconds(20);  // of a stream, or of a body: it takes something meanwhile
  void (*finish)(HttpAnswer& answer) = nullptr;     // adds what every answer has, also those of the server
};

// Answers one request. The first call counts; any thread may make it, also when server or connection are
// gone. Where no copy is left and none was made, the answer is 500.
class Reply {
 public:
  class Target {
   public:
    virtual ~Target() = default;
    virtual void answer(HttpAnswer answer) = 0;
  };
  explicit Reply(std::shared_ptr<Target> target) : target_(std::move(target)) {}
  void operator()(HttpAnswer answer) const { target_->answer(std::move(answer)); }

 private:
  std::shared_ptr<Target> target_;
};

class HttpServer {
 public:
  using Handler = std::function<void(HttpRequest request, Reply reply)>;
  using PathHandler = std::function<HttpAnswer()>;

  // Listens on "host:port" (an IP address; [::1]:8080 for IPv6; port 0: the system's choice; an empty host:
  // all addresses). INVALID_ARGUMENT: the address; UNAVAILABLE: the system's reason. `clock` must outlive it.
  static absl::StatusOr<std::unique_ptr<HttpServer>> start(const std::string& address, Handler handler,
                                                           const HttpLimits& limits, const Clock& clock,
                                                           TlsFiles tls = {});
  // The same at a socket that listens already.
  static absl::StatusOr<std::unique_ptr<HttpServer>> start(ListenSocket socket, Handler handler,
                                                           const HttpLimits& limits, const Clock& clock,
                                                           TlsFiles tls = {});
  // Serves GET and HEAD of these paths, without bodies, one for each connection.
  static absl::StatusOr<std::unique_ptr<HttpServer>> start(const std::string& address,
                                                           std::map<std::string, PathHandler> handlers,
                                                           const Clock& clock, TlsFiles tls = {});
  virtual ~HttpServer() = default;  // ends all connections

  virtual int port() const = 0;
  // Asks the streams for more. What waker() returns does so for as long as the server is there, and may be
  // called when it is gone.
  virtual std::function<void()> waker() const = 0;
  // How many there are now.
  virtual unsigned streams() const = 0;
};

}  // namespace paceline::web
