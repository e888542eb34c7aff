#pragma once

// One request's curl handle: its options, its answer as it comes, and what went wrong as a status. Internal
// to CurlTransport. One thread at a time.

#include <curl/curl.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "controller/cluster/kube/credentials.h"
#include "controller/cluster/kube/endpoint.h"
#include "controller/cluster/kube/transport.h"

namespace paceline::kube {

template <auto kFree>
struct CurlDeleter {
  void operator()(auto* handle) const { kFree(handle); }
};
using CurlEasy = std::unique_ptr<CURL, CurlDeleter<&::curl_easy_cleanup>>;
using CurlMulti = std::unique_ptr<CURLM, CurlDeleter<&::curl_multi_cleanup>>;
using CurlList = std::unique_ptr<curl_slist, CurlDeleter<&::curl_slist_free_all>>;

// What curl is told about an endpoint, worked out once.
struct CurlTarget {
  Endpoint endpoint;
  std::string base;        // what a request's path is appended to
  std::string host;        // header "Host: ...", where it differs from base's; else empty
  std::string connect_to;  // "::host:port", where the certificate's name is another than the host; else empty
  bool loopback = false;   // never through a proxy of the environment
};

absl::StatusOr<CurlTarget> curl_target(const Endpoint& endpoint);

class CurlExchange {
 public:
  using OnBytes = std::function<bool(std::string_view)>;

  // `target` and `request` must outlive this. With `on_bytes` the body of a 2xx answer goes there.
  CurlExchange(CurlEasy easy, const CurlTarget& target, const Request& request, IdentityPtr identity,
               OnBytes on_bytes);
  CurlExchange(const CurlExchange&) = delete;
  CurlExchange& operator=(const CurlExchange&) = delete;

  // INVALID_ARGUMENT: the request or the identity can't be sent.
  absl::Status prepare();
  CURL* easy() const { return easy_.get(); }
  // Moves with every byte that comes in.
  TimePoint heard_at() const { return heard_at_; }
  // The answer's status, once it has come, is no 2xx.
  bool is_refusal() const;
  // Whether curl has ended it with `code` because the connection is on its way out (GOAWAY), also a new one
  // whose server says good-bye with its first answer: curl starts it anew after a close, but not after this.
  // It may be started again, on the same handle.
  bool met_closing_connection(CURLcode code) const;
  // After curl has ended it with `code`.
  absl::StatusOr<Response> finish(CURLcode code);
  // "GET https://host/path", for messages.
  std::string what() const;
  CurlEasy release() { return std::move(easy_); }

 private:
  static std::size_t on_header(char* data, std::size_t size, std::size_t count, void* self);
  static std::size_t on_body(char* data, std::size_t size, std::size_t count, void* self);
  static int on_socket(void* self, curl_socket_t fd, curlsocktype purpose);
  void tls_options();
  bool add_header(std::string_view name, std::string_view value);
  absl::Status failure(CURLcode code) const;

  CurlEasy easy_;
  const CurlTarget& target_;
  const Request& request_;
  const IdentityPtr identity_;
  const OnBytes on_bytes_;
  const SystemClock clock_;
  CurlList headers_, connect_to_;
  Response response_;
  std::size_t header_bytes_ = 0;
  bool headers_complete_ = false;
  bool too_large_ = false, headers_too_large_ = false, ended_by_reader_ = false;
  TimePoint heard_at_;
  char error_[CURL_ERROR_SIZE] = {};
};

}  // namespace paceline::kube
