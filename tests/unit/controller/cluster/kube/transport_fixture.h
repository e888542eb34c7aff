#pragma once

// What the tests of CurlTransport share.

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "controller/cluster/kube/curl_transport.h"
#include "tests/support/scripted_http_server.h"

namespace paceline::kube {

inline std::unique_ptr<Transport> open_transport(const Endpoint& endpoint, FixedIdentity identity = {}) {
  auto transport = open_curl_transport(endpoint, fixed_credentials(std::move(identity)), Logger::none());
  EXPECT_TRUE(transport.ok()) << transport.status();
  return *std::move(transport);
}

inline Request get(std::string path, Duration timeout = std::chrono::minutes(1)) {
  return {.path = std::move(path), .timeout = timeout};
}

inline bool pass_over(std::string_view) {
  return true;
}

// Streams over a transport of its own.
inline absl::StatusOr<Response> stream_from(
    const ScriptedHttpServer& server, const Request& request,
    const std::function<bool(std::string_view)>& on_bytes = pass_over) {
  return open_transport({.server = server.url()})->stream(request, on_bytes, {});
}

// An answer that must have come.
inline Response answered(const absl::StatusOr<Response>& response) {
  EXPECT_TRUE(response.ok()) << response.status();
  return response.value_or(Response());
}

// The status code of a call, for comparisons.
inline absl::StatusCode code_of(const absl::StatusOr<Response>& response) {
  return response.status().code();
}

}  // namespace paceline::kube
