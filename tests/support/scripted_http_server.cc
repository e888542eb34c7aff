#include "tests/support/scripted_http_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <list>
#include <optional>
#include <thread>
#include <vector>

#include "base/check.h"
#include "base/guarded.h"
#include "base/text.h"
#include "base/unique_fd.h"

namespace paceline::testing {

namespace {

constexpr std::size_t kMaxRequestBytes = 64u << 20;

struct SslFree {
  void operator()(SSL* ssl) const { SSL_free(ssl); }
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(BIO* bio) const { BIO_free(bio); }
};
template <typename T>
using Ssl = std::unique_ptr<T, SslFree>;

Ssl<X509> certificate_of(const std::string& pem) {
  const Ssl<BIO> bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  return Ssl<X509>(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
}

Ssl<SSL_CTX> context_of(const ScriptedTls& tls) {
  Ssl<SSL_CTX> context(SSL_CTX_new(TLS_server_method()));
  const Ssl<X509> certificate = certificate_of(tls.server.certificate_pem);
  const Ssl<BIO> bio(BIO_new_mem_buf(tls.server.key_pem.data(), static_cast<int>(tls.server.key_pem.size())));
  const Ssl<EVP_PKEY> key(PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, nullptr));
  PL_CHECK(SSL_CTX_use_certificate(context.get(), certificate.get()) == 1, "a server's certificate");
  PL_CHECK(SSL_CTX_use_PrivateKey(context.get(), key.get()) == 1, "a server's key");
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
  struct Peer {
    UniqueFd socket;
    std::thread thread;
  };

  Script script;
  std::unique_ptr<ScriptedTls> tls;
  Ssl<SSL_CTX> context;
  int port = 0;
  std::atomic<int> connections{0}, requests{0};
  UniqueFd listener, stopped;
  std::thread acceptor;
  Guarded<std::list<Peer>> peers;  // the acceptor adds, stop() removes

  void listen() {
    stopped = UniqueFd(::eventfd(0, EFD_CLOEXEC));
    listener = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int one = 1;
    ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    socklen_t size = sizeof(address);
    PL_CHECK(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size) == 0,
             "a port on the loopback");
    PL_CHECK(::listen(listener.get(), 1024) == 0, "a port to listen on");
    PL_CHECK(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0, "its number");
    port = ntohs(address.sin_port);
  }

  void accept_all() {
    pollfd fds[] = {{stopped.get(), POLLIN, 0}, {listener.get(), POLLIN, 0}};
    while (true) {
      if (::poll(fds, 2, -1) < 0 && errno != EINTR) return;
      if (fds[0].revents != 0) return;
      UniqueFd socket(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!socket.valid()) continue;
      const int fd = socket.get(), number = ++connections;
      auto locked = peers.lock();
      locked->push_back({std::move(socket), std::thread([this, fd, number] { serve(fd, number); })});
    }
  }

  void serve(int fd, int number) {
    // OpenSSL writes without MSG_NOSIGNAL.
    sigset_t pipe;
    ::sigemptyset(&pipe);
    ::sigaddset(&pipe, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
    const int one = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    {
      Connection connection(fd, number, context.get(), stopped.get());
      ScriptedRequest request;
      if (connection.handshake()) {
        while (!connection.closing() && connection.read_request(request)) {
          ++requests;
          script(request, connection);
        }
      }
    }
    ::shutdown(fd, SHUT_RDWR);
  }
};

ScriptedHttpServer::ScriptedHttpServer(Script script, std::unique_ptr<ScriptedTls> tls)
    : impl_(std::make_unique<Impl>()) {
  impl_->script = std::move(script);
  impl_->tls = std::move(tls);
  if (impl_->tls != nullptr) impl_->context = context_of(*impl_->tls);
  start();
}

ScriptedHttpServer::~ScriptedHttpServer() {
  stop();
}

std::string ScriptedHttpServer::url() const {
  return str_cat(impl_->tls == nullptr ? "http" : "https", "://127.0.0.1:", impl_->port);
}
int ScriptedHttpServer::port() const {
  return impl_->port;
}
int ScriptedHttpServer::connections() const {
  return impl_->connections;
}
int ScriptedHttpServer::requests() const {
  return impl_->requests;
}

void ScriptedHttpServer::start() {
  impl_->listen();
  impl_->acceptor = std::thread([this] { impl_->accept_all(); });
}

void ScriptedHttpServer::stop() {
  if (!impl_->acceptor.joinable()) return;
  ::eventfd_write(impl_->stopped.get(), 1);
  impl_->acceptor.join();
  impl_->listener.reset();
  std::list<Impl::Peer> peers;
  peers.swap(*impl_->peers.lock());
  for (const Impl::Peer& peer : peers) ::shutdown(peer.socket.get(), SHUT_RDWR);
  for (Impl::Peer& peer : peers) peer.thread.join();
}

}  // namespace paceline::testing
