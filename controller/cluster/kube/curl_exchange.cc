#include "controller/cluster/kube/curl_exchange.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <initializer_list>
#include <utility>

#include "base/status.h"
#include "controller/cluster/kube/api_error.h"
#include "controller/cluster/kube/curl_transport.h"

namespace paceline::kube {

namespace {

constexpr long kKeepAliveIdleSeconds = 15, kKeepAliveIntervalSeconds = 5;

bool has_control(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 127; });
}

curl_blob blob_of(const std::string& text) {
  return {const_cast<char*>(text.data()), text.size(), CURL_BLOB_NOCOPY};
}

class Url {
 public:
  Url() : url_(::curl_url()) {}
  ~Url() { ::curl_url_cleanup(url_); }
  Url(const Url&) = delete;
  Url& operator=(const Url&) = delete;
  bool set(CURLUPart part, const std::string& value) {
    return ::curl_url_set(url_, part, value.c_str(), 0) == CURLUE_OK;
  }
  std::string get(CURLUPart part, unsigned flags = 0) const {
    char* text = nullptr;
    if (::curl_url_get(url_, part, &text, flags) != CURLUE_OK) return "";
    std::string result = text;
    ::curl_free(text);
    return result;
  }

 private:
  CURLU* url_;
};

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "[::1]" || host.starts_with("127.");
}

bool holds_any(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return text.find(word) != std::string_view::npos; });
}

// The server refuses our certificate. TLS 1.3 says so only when the first answer is due, as an alert, which
// curl reports as an error of reading.
bool is_certificate_alert(std::string_view error) {
  return holds_any(error, {"alert"}) &&
         holds_any(error, {"certificate", "unknown ca", "access denied", "decrypt error"});
}

// The server's certificate names our authority, but another one of the same name has signed it: not a failed
// verification to OpenSSL, but an error of its own.
bool is_foreign_signature(CURLcode code, std::string_view error) {
  return code == CURLE_SSL_CONNECT_ERROR &&
         holds_any(error, {"EVP lib", "signature", "rsa routines", "padding"});
}

}  // namespace

absl::StatusOr<CurlTarget> curl_target(const Endpoint& endpoint) {
  const auto wrong = [&](std::string_view problem) {
    return absl::InvalidArgumentError(str_cat("server address \"", endpoint.server.substr(0, 200), "\" ",
                                              problem, "; it looks like https://10.0.0.1:6443"));
  };
  CurlTarget target;
  target.endpoint = endpoint;
  Url url;
  if (endpoint.server.find("://") == std::string::npos) return wrong("does not say https:// (or http://)");
  if (!url.set(CURLUPART_URL, endpoint.server)) return wrong("is no URL");
  const std::string scheme = url.get(CURLUPART_SCHEME), host = url.get(CURLUPART_HOST);
  if (scheme != "https" && scheme != "http") return wrong("is neither https nor http");
  if (!url.get(CURLUPART_USER).empty())
    return wrong("holds a user name; that belongs into the kubeconfig's user");
  if (!url.get(CURLUPART_QUERY).empty() || !url.get(CURLUPART_FRAGMENT).empty())
    return wrong("holds a query or a fragment");
  target.loopback = is_loopback(host);
  const std::string port = url.get(CURLUPART_PORT, CURLU_DEFAULT_PORT);
  if (!endpoint.tls_server_name.empty() && scheme == "https" && endpoint.tls_server_name != host) {
    // curl takes the name to verify from the URL, so the name goes there, and the connection elsewhere.
    target.connect_to = str_cat("::", host, ":", port);
    target.host = str_cat(host, ":", port);
    if (!url.set(CURLUPART_HOST, endpoint.tls_server_name) || has_control(endpoint.tls_server_name)) {
      return absl::InvalidArgumentError(
          str_cat("tls-server-name \"", endpoint.tls_server_name.substr(0, 200), "\" is no host name"));
    }
  }
  target.base = url.get(CURLUPART_URL);
  while (!target.base.empty() && target.base.back() == '/') target.base.pop_back();
  if (!endpoint.proxy_url.empty()) {
    Url proxy;
    const bool good = proxy.set(CURLUPART_URL, endpoint.proxy_url);
    const std::string kind = good ? proxy.get(CURLUPART_SCHEME) : "";
    if (kind != "http" && kind != "https" && kind != "socks5" && kind != "socks5h") {
      return absl::InvalidArgumentError(str_cat("proxy-url \"", endpoint.proxy_url.substr(0, 200),
                                                "\" is not known; allowed: http://, https://, socks5://, "
                                                "socks5h://, each with host and port"));
    }
  }
  return target;
}

CurlExchange::CurlExchange(CurlEasy easy, const CurlTarget& target, const Request& request,
                           IdentityPtr identity, OnBytes on_bytes)
    : easy_(std::move(easy)),
      target_(target),
      request_(request),
      identity_(std::move(identity)),
      on_bytes_(std::move(on_bytes)),
      heard_at_(clock_.now()) {
  if (easy_ == nullptr) {
    easy_.reset(::curl_easy_init());
  } else {
    ::curl_easy_reset(easy_.get());
  }
}

bool CurlExchange::add_header(std::string_view name, std::string_view value) {
  if (has_control(name) || has_control(value)) return false;
  const std::string line = str_cat(name, ": ", value);
  curl_slist* longer = ::curl_slist_append(headers_.get(), line.c_str());
  if (longer == nullptr) return false;
  headers_.release();
  headers_.reset(longer);
  return true;
}

absl::Status CurlExchange::prepare() {
  CURL* easy = easy_.get();
  if (easy == nullptr) return absl::ResourceExhaustedError("curl_easy_init: no memory");
  if (request_.path.empty() || request_.path.front() != '/' || has_control(request_.path) ||
      request_.path.find(' ') != std::string::npos) {
    return absl::InvalidArgumentError(
        str_cat("request path \"", request_.path.substr(0, 200),
                "\" must begin with / and hold no blanks or control characters"));
  }
  ::curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, error_);
  ::curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  ::curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);  // a name that is still being looked up holds nobody back
  ::curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "https,http");
  ::curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
  ::curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
                     static_cast<long>(kConnectTimeout / std::chrono::milliseconds(1)));
  ::curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
  ::curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, kKeepAliveIdleSeconds);
  ::curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, kKeepAliveIntervalSeconds);
  ::curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, &CurlExchange::on_socket);
  ::curl_easy_setopt(easy, CURLOPT_URL, str_cat(target_.base, request_.path).c_str());
  // A stream has its connection to itself: HTTP/2 would add nothing but windows.
  ::curl_easy_setopt(easy, CURLOPT_HTTP_VERSION,
                     on_bytes_ == nullptr ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1);
  ::curl_easy_setopt(easy, CURLOPT_PIPEWAIT, 1L);  // rather one connection with many streams than many
  ::curl_easy_setopt(easy, CURLOPT_USERAGENT, "paceline/" PACELINE_VERSION);
  ::curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, &CurlExchange::on_header);
  ::curl_easy_setopt(easy, CURLOPT_HEADERDATA, this);
  ::curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &CurlExchange::on_body);
  ::curl_easy_setopt(easy, CURLOPT_WRITEDATA, this);
  ::curl_easy_setopt(easy, CURLOPT_PRIVATE, this);
  if (!target_.connect_to.empty()) {
    connect_to_.reset(::curl_slist_append(nullptr, target_.connect_to.c_str()));
    ::curl_easy_setopt(easy, CURLOPT_CONNECT_TO, connect_to_.get());
  }
  if (!target_.endpoint.proxy_url.empty()) {
    ::curl_easy_setopt(easy, CURLOPT_PROXY, target_.endpoint.proxy_url.c_str());
    ::curl_easy_setopt(easy, CURLOPT_NOPROXY, "");
  } else if (target_.loopback) {
    ::curl_easy_setopt(easy, CURLOPT_PROXY, "");
  }
  ::curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  tls_options();

  if (request_.method != Method::kGet) {
    ::curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, method_name(request_.method));
    if (request_.method != Method::kDelete || !request_.body.empty()) {
      ::curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request_.body.size()));
      ::curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request_.body.data());
    }
  }
  bool good = add_header("Accept", "application/json") && add_header("Expect", "");
  if (!target_.host.empty()) good = good && add_header("Host", target_.host);
  // An empty value would make curl leave the header out, which is right: it would invent one otherwise.
  good = good && add_header("Content-Type", request_.content_type);
  if (!good) return absl::InvalidArgumentError("the request's content type holds control characters");
  for (const auto& [name, value] : identity_->headers) {
    if (!add_header(name, value))
      return absl::UnauthenticatedError(
          str_cat("credentials: header ", name, " would hold control characters"));
  }
  ::curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers_.get());
  return absl::OkStatus();
}

void CurlExchange::tls_options() {
  CURL* easy = easy_.get();
  const Endpoint& endpoint = target_.endpoint;
  const std::string& authority = identity_->ca_pem.empty() ? endpoint.ca_pem : identity_->ca_pem;
  if (!authority.empty()) {
    // This authority and no other: not the system's beside it.
    curl_blob ca = blob_of(authority);
    ::curl_easy_setopt(easy, CURLOPT_CAINFO, nullptr);
    ::curl_easy_setopt(easy, CURLOPT_CAPATH, nullptr);
    ::curl_easy_setopt(easy, CURLOPT_CAINFO_BLOB, &ca);
  }
  ::curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, endpoint.insecure_skip_tls_verify ? 0L : 1L);
  ::curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, endpoint.insecure_skip_tls_verify ? 0L : 2L);
  ::curl_easy_setopt(easy, CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2);
  if (!identity_->certificate_pem.empty()) {
    curl_blob certificate = blob_of(identity_->certificate_pem), key = blob_of(identity_->key_pem);
    ::curl_easy_setopt(easy, CURLOPT_SSLCERT_BLOB, &certificate);
    ::curl_easy_setopt(easy, CURLOPT_SSLKEY_BLOB, &key);
    ::curl_easy_setopt(easy, CURLOPT_KEYPASSWD, "");  // OpenSSL would ask at the terminal
  }
}

int CurlExchange::on_socket(void*, curl_socket_t fd, curlsocktype) {
  constexpr int kLimitMs = kUnacknowledgedLimit / std::chrono::milliseconds(1);
  ::setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &kLimitMs, sizeof(kLimitMs));
  return CURL_SOCKOPT_OK;
}

std::size_t CurlExchange::on_header(char* data, std::size_t size, std::size_t count, void* self) {
  auto& exchange = *static_cast<CurlExchange*>(self);
  const std::string_view line(data, size * count);
  exchange.heard_at_ = exchange.clock_.now();
  if (line.starts_with("HTTP/")) exchange.headers_complete_ = false;
  if (line == "\r\n" || line == "\n") exchange.headers_complete_ = true;
  exchange.header_bytes_ += line.size();
  exchange.headers_too_large_ = exchange.header_bytes_ > kMaxHeaderBytes;
  return exchange.headers_too_large_ ? 0 : line.size();
}

std::size_t CurlExchange::on_body(char* data, std::size_t size, std::size_t count, void* self) {
  auto& exchange = *static_cast<CurlExchange*>(self);
  const std::string_view bytes(data, size * count);
  exchange.heard_at_ = exchange.clock_.now();
  long status = 0;
  ::curl_easy_getinfo(exchange.easy_.get(), CURLINFO_RESPONSE_CODE, &status);
  if (exchange.on_bytes_ != nullptr && status >= 200 && status < 300) {
    exchange.ended_by_reader_ = !exchange.on_bytes_(bytes);
    exchange.heard_at_ = exchange.clock_.now();  // the reader's own time is not the server's silence
    return exchange.ended_by_reader_ ? 0 : bytes.size();
  }
  std::string& body = exchange.response_.body;
  exchange.too_large_ = bytes.size() > exchange.request_.max_response_bytes - body.size();
  if (exchange.too_large_) return 0;
  body.append(bytes);
  return bytes.size();
}

bool CurlExchange::is_refusal() const {
  long status = 0;
  ::curl_easy_getinfo(easy_.get(), CURLINFO_RESPONSE_CODE, &status);
  return status >= 300;
}

bool CurlExchange::met_closing_connection(CURLcode code) const {
  return code == CURLE_HTTP2 && header_bytes_ == 0;
}

absl::StatusOr<Response> CurlExchange::finish(CURLcode code) {
  CURL* easy = easy_.get();
  if (code != CURLE_OK && !ended_by_reader_) return failure(code);
  // curl takes a close within the headers for an answer without a body.
  if (!headers_complete_)
    return absl::UnavailableError(str_cat(what(), ": the answer broke off within its headers"));
  long status = 0;
  ::curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
  response_.status = static_cast<int>(status);
  const char* type = nullptr;
  if (::curl_easy_getinfo(easy, CURLINFO_CONTENT_TYPE, &type) == CURLE_OK && type != nullptr)
    response_.content_type = type;
  curl_off_t seconds = 0;
  if (::curl_easy_getinfo(easy, CURLINFO_RETRY_AFTER, &seconds) == CURLE_OK && seconds > 0)
    response_.retry_after = std::chrono::seconds(std::min<curl_off_t>(seconds, 24 * 3600));
  return std::move(response_);
}

std::string CurlExchange::what() const {
  return str_cat(method_name(request_.method), " ", target_.endpoint.server,
                 std::string_view(request_.path).substr(0, request_.path.find('?')));
}

absl::Status CurlExchange::failure(CURLcode code) const {
  const auto with = [&](absl::StatusCode status, std::string_view text) {
    return absl::Status(status, str_cat(what(), ": ", text));
  };
  if (too_large_) {
    return with(absl::StatusCode::kResourceExhausted,
                str_cat("the answer is larger than ", request_.max_response_bytes, " bytes"));
  }
  if (headers_too_large_) {
    return with(absl::StatusCode::kResourceExhausted,
                str_cat("the answer's headers are larger than ", kMaxHeaderBytes, " bytes"));
  }
  const std::string error = error_[0] != '\0' ? error_ : ::curl_easy_strerror(code);
  if (code == CURLE_PEER_FAILED_VERIFICATION || is_foreign_signature(code, error)) {
    return with(
        absl::StatusCode::kUnauthenticated,
        str_cat("the server's certificate is refused: ", error,
                "; compare the kubeconfig's certificate-authority, server and tls-server-name with it"));
  }
  switch (code) {
    case CURLE_SSL_CACERT_BADFILE:
      return with(absl::StatusCode::kUnauthenticated,
                  str_cat("the certificate authority can't be used: ", error, "; is it a PEM certificate?"));
    case CURLE_SSL_CERTPROBLEM:
      return with(absl::StatusCode::kUnauthenticated,
                  str_cat("the client certificate can't be used: ", error,
                          "; it must be PEM, and its key must belong to it and have no pass phrase"));
    case CURLE_OUT_OF_MEMORY:
      return with(absl::StatusCode::kResourceExhausted, error);
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_WEIRD_SERVER_REPLY:
      return with(absl::StatusCode::kUnavailable, str_cat("the answer is no HTTP: ", error));
    case CURLE_PARTIAL_FILE:
      return with(absl::StatusCode::kUnavailable, str_cat("the answer broke off: ", error));
    case CURLE_OPERATION_TIMEDOUT:  // only connecting has a timeout of curl's
      return with(absl::StatusCode::kUnavailable, str_cat("no connection: ", error));
    default:
      break;
  }
  if (is_certificate_alert(error)) {
    return with(absl::StatusCode::kUnauthenticated,
                str_cat("the server refuses our certificate, or wants one: ", error,
                        "; check the kubeconfig's client-certificate and client-key"));
  }
  return with(absl::StatusCode::kUnavailable, error);
}

}  // namespace paceline::kube
