#include "tests/support/scripted_http_server.h"

#include <openssl/err.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

#include "base/text.h"
#include "tests/support/loopback_server.h"

namespace paceline {

namespace {

constexpr std::size_t kMaxRequestBytes = 64u << 20;

Ssl<SSL_CTX> context_of(const ScriptedTls& tls) {
  Ssl<SSL_CTX> context = server_context(tls.server);
  if (!tls.client_ca_pem.empty()) {
    const Ssl<X509> authority = certificate_of(tls.client_ca_pem);
    X509_STORE_add_cert(SSL_CTX_get_cert_store(context.get()), authority.get());
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  }
  return context;
}

// A connection's bytes, with or without TLS. Its thread's, but for `fd`, which others may shut down.
class Connection final : public ScriptedAnswer {
 public:
  Connection(int fd, int number, SSL_CTX* context, int stopped)
      : fd_(fd), number_(number), stopped_(stopped) {
    if (context != nullptr) {
      ssl_.reset(SSL_new(context));
      SSL_set_fd(ssl_.get(), fd);
    }
  }
  ~Connection() override {
    if (ssl_ != nullptr && shaken_) SSL_shutdown(ssl_.get());
  }

  bool handshake() {
    shaken_ = ssl_ == nullptr || SSL_accept(ssl_.get()) == 1;
    ERR_clear_error();
    return shaken_;
  }

  bool send(std::string_view bytes) override {
    while (!bytes.empty()) {
      const std::size_t piece = std::min<std::size_t>(bytes.size(), 1u << 20);
      const long sent = ssl_ != nullptr ? SSL_write(ssl_.get(), bytes.data(), static_cast<int>(piece))
                                        : ::send(fd_, bytes.data(), piece, MSG_NOSIGNAL);
      if (sent <= 0) {
        ERR_clear_error();
        return false;
      }
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }

  void hold() override {
    // What it still sends is no reason to answer; only its end is.
    char buffer[4096];
    while (receive(buffer, sizeof(buffer)) > 0) {
    }
    close();
  }

  bool pause(Duration time) override {
    pollfd fds[] = {{stopped_, POLLIN, 0}, {fd_, POLLRDHUP, 0}};
    return ::poll(fds, 2, static_cast<int>(time / std::chrono::milliseconds(1))) == 0;
  }

  void close() override { closing_ = true; }
  bool closing() const { return closing_; }

  bool read_request(ScriptedRequest& request) {
    const std::optional<std::size_t> head = read_until("\r\n\r\n");
    if (!head.has_value()) return false;
    request = ScriptedRequest{};
    request.connection = number_;
    request.client_name = client_name();
    parse_head(buffer_.substr(0, *head), request);
    buffer_.erase(0, *head + 4);
    const auto length = request.headers.find("content-length");
    const std::size_t size = length == request.headers.end() ? 0 : std::stoul(length->second);
    while (buffer_.size() < size) {
      if (!fill()) return false;
    }
    request.body = buffer_.substr(0, size);
    buffer_.erase(0, size);
    return true;
  }

 private:
  long receive(char* into, std::size_t size) {
    const long n =
        ssl_ != nullptr ? SSL_read(ssl_.get(), into, static_cast<int>(size)) : ::recv(fd_, into, size, 0);
    ERR_clear_error();
    return n;
  }

  bool fill() {
    char piece[16384];
    const long n = receive(piece, sizeof(piece));
    if (n <= 0 || buffer_.size() > kMaxRequestBytes) return false;
    buffer_.append(piece, static_cast<std::size_t>(n));
    return true;
  }

  std::optional<std::size_t> read_until(std::string_view mark) {
    while (true) {
      const std::size_t at = buffer_.find(mark);
      if (at != std::string::npos) return at;
      if (!fill()) return std::nullopt;
    }
  }

  static void parse_head(const std::string& head, ScriptedRequest& request) {
    const std::size_t first_end = std::min(head.find("\r\n"), head.size());
    const std::string first = head.substr(0, first_end);
    const std::size_t a = first.find(' '), b = first.rfind(' ');
    request.method = first.substr(0, a);
    request.target = a == b ? "" : first.substr(a + 1, b - a - 1);
    for (std::size_t from = first_end + 2; from < head.size();) {
      const std::size_t to = std::min(head.find("\r\n", from), head.size());
      const std::string line = head.substr(from, to - from);
      const std::size_t colon = std::min(line.find(':'), line.size());
      std::string name = line.substr(0, colon);
      std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
      const std::size_t value = std::min(line.find_first_not_of(' ', colon + 1), line.size());
      request.headers[name] = line.substr(value);
      from = to + 2;
    }
  }

  std::string client_name() const {
    if (ssl_ == nullptr) return "";
    const Ssl<X509> certificate(SSL_get1_peer_certificate(ssl_.get()));
    if (certificate == nullptr) return "";
    char name[128] = {};
    X509_NAME_get_text_by_NID(X509_get_subject_name(certificate.get()), NID_commonName, name, sizeof(name));
    return name;
  }

  const int fd_, number_, stopped_;
  Ssl<SSL> ssl_;
  bool shaken_ = false, closing_ = false;
  std::string buffer_;
};

}  // namespace

bool ScriptedAnswer::reply(int status, std::string_view body, std::string_view headers) {
  return send(str_cat("HTTP/1.1 ", status, " Scripted\r\nContent-Type: application/json\r\nContent-Length: ",
                      body.size(), "\r\n", headers, "\r\n", body));
}

struct ScriptedHttpServer::Impl {
  const Script script;
  const Ssl<SSL_CTX> context;  // null: without TLS
  std::atomic<int> requests{0};
  LoopbackServer server;  // last: its threads use the above

  Impl(Script answers, const ScriptedTls* tls)
      : script(std::move(answers)),
        context(tls == nullptr ? nullptr : context_of(*tls)),
        server([this](int fd, int number, int stopped) { serve(fd, number, stopped); }) {}

  void serve(int fd, int number, int stopped) {
    Connection connection(fd, number, context.get(), stopped);
    ScriptedRequest request;
    if (!connection.handshake()) return;
    while (!connection.closing() && connection.read_request(request)) {
      ++requests;
      script(request, connection);
    }
  }
};

ScriptedHttpServer::ScriptedHttpServer(Script script, std::unique_ptr<ScriptedTls> tls)
    : impl_(std::make_unique<Impl>(std::move(script), tls.get())) {}

ScriptedHttpServer::~ScriptedHttpServer() = default;

std::string ScriptedHttpServer::url() const {
  return str_cat(impl_->context == nullptr ? "http" : "https", "://127.0.0.1:", port());
}
int ScriptedHttpServer::port() const {
  return impl_->server.port();
}
int ScriptedHttpServer::connections() const {
  return impl_->server.connections();
}
int ScriptedHttpServer::requests() const {
  return impl_->requests;
}

void ScriptedHttpServer::start() {
  impl_->server.start();
}

void ScriptedHttpServer::stop() {
  impl_->server.stop();
}

}  // namespace paceline
