#pragma once

// One HTTP exchange with the API server. Thread-safe: any number of calls at once.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/clock.h"

namespace paceline::kube {

enum class Method : std::uint8_t { kGet, kPost, kPut, kPatch, kDelete };

struct Request {
  Method method = Method::kGet;
  std::string path;          // with query, e.g. /api/v1/namespaces/default/pods?limit=500
  std::string content_type;  // of the body; empty without one
  std::string body;
  Duration timeout = std::chrono::seconds(30);  // of the whole call; stream(): of silence
  Duration total{};  // stream(): of the whole answer; zero: without end, where it is a 2xx
  std::size_t max_response_bytes = 64u << 20;  // more is RESOURCE_EXHAUSTED
};

struct Response {
  int status = 0;  // 200, 404, ...
  std::string body;
  std::optional<Duration> retry_after;
  std::string content_type;
};

class Transport {
 public:
  virtual ~Transport() = default;
  // Any HTTP status is OK here. UNAVAILABLE: no connection, a broken one, or half an answer;
  // DEADLINE_EXCEEDED; UNAUTHENTICATED: credentials cannot be had (exec plug-in failed, token file
  // unreadable), or TLS refuses the server; RESOURCE_EXHAUSTED: the answer is larger than allowed.
  // Errors name the method and the whole URL, where there was a request.
  virtual absl::StatusOr<Response> call(const Request& request) = 0;
  // A long answer in pieces, in the caller's thread: `on_bytes` sees a 2xx body as it arrives and returns
  // false to end; other statuses come back with their body, which has no longer than `timeout` for all of it.
  // Ends too when `stop` is requested, within 100 ms: CANCELLED.
  virtual absl::StatusOr<Response> stream(const Request& request,
                                          const std::function<bool(std::string_view)>& on_bytes,
                                          std::stop_token stop) = 0;
};

}  // namespace paceline::kube
