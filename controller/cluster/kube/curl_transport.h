#pragma once

// Transport over libcurl: HTTP/2 where the server offers it, else HTTP/1.1; TLS as the endpoint asks.
//
// Calls share connections (on HTTP/2 one, in many streams), which one thread of the transport's serves. A
// stream has a connection to itself and runs in its caller's thread, so that a slow reader slows down only
// its own server's side; one that came to its end leaves the connection to a later stream. Nothing is
// followed, nothing retried, but for two things: a call is sent again when a connection turns out to be
// closed or closing before a byte of the answer came, and, with other credentials, after a 401. A server that
// says good-bye together with its answer (GOAWAY) may so get a call twice: what must not happen twice needs a
// name, a uid or a version that is checked.
//
// Bounds: kMaxCallsInFlight (others wait, within their deadlines), kMaxHeaderBytes per answer, the request's
// max_response_bytes, kConnectTimeout, kUnacknowledgedLimit.

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/log.h"
#include "controller/cluster/kube/credentials.h"
#include "controller/cluster/kube/endpoint.h"
#include "controller/cluster/kube/transport.h"

namespace paceline::kube {

inline constexpr int kMaxCallsInFlight = 100;  // the API server's own limit of streams per connection
inline constexpr std::size_t kMaxHeaderBytes = 256u << 10;
inline constexpr Duration kConnectTimeout = std::chrono::seconds(10);  // name, TCP and TLS together
// A peer that vanished (no FIN, no RST) is noticed after this much silence to what was sent, or to probes;
// all calls of that connection fail then, and the next ones have another.
inline constexpr Duration kUnacknowledgedLimit = std::chrono::seconds(5);

// INVALID_ARGUMENT: the endpoint's addresses can't be right. Nothing is sent yet. Calls and streams
// must have returned before the transport is destroyed.
absl::StatusOr<std::unique_ptr<Transport>> open_curl_transport(const Endpoint& endpoint,
                                                               std::shared_ptr<Credentials> credentials,
                                                               Logger logger);

}  // namespace paceline::kube
