#pragma once

// A small HTTP/1.1 server for probes and metrics, over libmicrohttpd. GET and HEAD of whole paths; one answer
// per connection.
//
// One thread serves all connections and calls the handlers, which must not block. Thread-safe. Bounds:
// kMaxConnections (further ones wait), kMaxRequestBytes for request and answer's head,
// kConnectionLimit from the first byte to the last, whatever the other side does (the place of a connection
// that is ended so is free within 5 s).

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"

namespace paceline::web {

inline constexpr unsigned kMaxConnections = 64;
inline constexpr std::size_t kMaxRequestBytes = 32 << 10;
inline constexpr Duration kConnectionLimit = std::chrono::seconds(10);

struct HttpAnswer {
  int status = 200;
  std::string body;
  std::string content_type = "text/plain; charset=utf-8";
};

class HttpServer {
 public:
  using Handler = std::function<HttpAnswer()>;

  // Listens on "host:port" (an IP address; [::1]:8080 for IPv6; port 0: the system's choice; an empty host:
  // all addresses) and serves `handlers` by path. INVALID_ARGUMENT: the address; UNAVAILABLE: the system's
  // reason. `clock` must outlive it.
  static absl::StatusOr<std::unique_ptr<HttpServer>> start(const std::string& address,
                                                           std::map<std::string, Handler> handlers,
                                                           const Clock& clock);
  virtual ~HttpServer() = default;  // ends all connections

  virtual int port() const = 0;
};

}  // namespace paceline::web
