#include "tests/support/scripted_h2_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <cerrno>
#include <memory>
#include <string_view>

#include "base/check.h"
#include "base/text.h"

namespace paceline::testing {

namespace {

constexpr std::size_t kPrefaceBytes = 24, kHeadBytes = 9;
constexpr std::uint8_t kData = 0, kHeaders = 1, kSettings = 4, kPing = 6, kGoAway = 7;  // types of frames
constexpr std::uint8_t kEndStream = 1, kAck = 1, kEndHeaders = 4;                       // flags
constexpr int kPartingMs = 20;                   // between GOAWAY and the close
constexpr std::string_view kStatus200 = "\x88";  // HPACK's static table

struct SslFree {
  void operator()(SSL* ssl) const { SSL_free(ssl); }
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(BIO* bio) const { BIO_free(bio); }
};
template <typename T>
using Ssl = std::unique_ptr<T, SslFree>;

int choose_h2(SSL*, const unsigned char** out, unsigned char* out_size, const unsigned char* in,
              unsigned int in_size, void*) {
  constexpr std::string_view kOurs = "\x02h2";
  unsigned char* chosen = nullptr;
  const int result =
      SSL_select_next_proto(&chosen, out_size, reinterpret_cast<const unsigned char*>(kOurs.data()),
                            static_cast<unsigned>(kOurs.size()), in, in_size);
  *out = chosen;
  return result == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

std::string big_endian(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = bytes - 1; i >= 0; --i) text += static_cast<char>(value >> (8 * i) & 255u);
  return text;
}

std::string frame(std::uint8_t type, std::uint8_t flags, std::uint32_t stream, std::string_view payload) {
  return big_endian(payload.size(), 3) + big_endian(type, 1) + big_endian(flags, 1) + big_endian(stream, 4) +
         std::string(payload);
}

struct Frame {
  std::uint8_t type = 0, flags = 0;
  std::uint32_t stream = 0;
  std::string payload;
};

// One thread's.
class Connection {
 public:
  explicit Connection(SSL* ssl) : ssl_(ssl) {}

  bool send(const std::string& bytes) {
    const bool sent = SSL_write(ssl_, bytes.data(), static_cast<int>(bytes.size())) > 0;
    ERR_clear_error();
    return sent;
  }
  bool read(std::string& into, std::size_t size) {
    while (buffer_.size() < size) {
      char piece[16384];
      const int n = SSL_read(ssl_, piece, sizeof(piece));
      ERR_clear_error();
      if (n <= 0) return false;
      buffer_.append(piece, static_cast<std::size_t>(n));
    }
    into = buffer_.substr(0, size);
    buffer_.erase(0, size);
    return true;
  }
  bool read(Frame& frame) {
    std::string head;
    if (!read(head, kHeadBytes)) return false;
    const auto at = [&](std::size_t i) {
      return static_cast<std::uint32_t>(static_cast<unsigned char>(head[i]));
    };
    frame.type = static_cast<std::uint8_t>(at(3));
    frame.flags = static_cast<std::uint8_t>(at(4));
    frame.stream = (at(5) & 0x7fu) << 24 | at(6) << 16 | at(7) << 8 | at(8);
    return read(frame.payload, at(0) << 16 | at(1) << 8 | at(2));
  }

 private:
  SSL* const ssl_;
  std::string buffer_;
};

}  // namespace

struct ScriptedH2Server::Tls {
  Ssl<SSL_CTX> context;
};

ScriptedH2Server::ScriptedH2Server(const KeyPair& server, Script script)
    : script_(std::move(script)), tls_(std::make_unique<Tls>()) {
  tls_->context.reset(SSL_CTX_new(TLS_server_method()));
  const Ssl<BIO> certificate_bio(
      BIO_new_mem_buf(server.certificate_pem.data(), static_cast<int>(server.certificate_pem.size())));
  const Ssl<BIO> key_bio(BIO_new_mem_buf(server.key_pem.data(), static_cast<int>(server.key_pem.size())));
  const Ssl<X509> certificate(PEM_read_bio_X509(certificate_bio.get(), nullptr, nullptr, nullptr));
  const Ssl<EVP_PKEY> key(PEM_read_bio_PrivateKey(key_bio.get(), nullptr, nullptr, nullptr));
  PL_CHECK(SSL_CTX_use_certificate(tls_->context.get(), certificate.get()) == 1, "a server's certificate");
  PL_CHECK(SSL_CTX_use_PrivateKey(tls_->context.get(), key.get()) == 1, "a server's key");
  SSL_CTX_set_alpn_select_cb(tls_->context.get(), &choose_h2, nullptr);

  stopped_ = UniqueFd(::eventfd(0, EFD_CLOEXEC));
  listener_ = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  PL_CHECK(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size) == 0,
           "a port on the loopback");
  PL_CHECK(::listen(listener_.get(), 64) == 0, "a port to listen on");
  PL_CHECK(::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0, "its number");
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { accept_all(); });
}

ScriptedH2Server::~ScriptedH2Server() {
  ::eventfd_write(stopped_.get(), 1);
  acceptor_.join();
  std::list<Peer> peers;
  peers.swap(*peers_.lock());
  for (const Peer& peer : peers) ::shutdown(peer.socket.get(), SHUT_RDWR);
  for (Peer& peer : peers) peer.thread.join();
}

std::string ScriptedH2Server::url() const {
  return str_cat("https://127.0.0.1:", port_);
}

void ScriptedH2Server::accept_all() {
  pollfd fds[] = {{stopped_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
  while (true) {
    if (::poll(fds, 2, -1) < 0 && errno != EINTR) return;
    if (fds[0].revents != 0) return;
    UniqueFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!socket.valid()) continue;
    const int fd = socket.get(), number = ++connections_;
    auto locked = peers_.lock();
    locked->push_back({std::move(socket), std::thread([this, fd, number] { serve(fd, number); })});
  }
}

void ScriptedH2Server::serve(int fd, int number_of_connection) {
  sigset_t pipe;  // OpenSSL writes without MSG_NOSIGNAL
  ::sigemptyset(&pipe);
  ::sigaddset(&pipe, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
  const Ssl<SSL> ssl(SSL_new(tls_->context.get()));
  SSL_set_fd(ssl.get(), fd);
  Connection connection(ssl.get());
  std::string preface;
  bool open = SSL_accept(ssl.get()) == 1 && connection.read(preface, kPrefaceBytes) &&
              connection.send(frame(kSettings, 0, 0, ""));
  ERR_clear_error();
  std::uint32_t last = 0;  // the last request that was taken
  for (Frame got; open && connection.read(got);) {
    if (got.type == kSettings && (got.flags & kAck) == 0)
      open = connection.send(frame(kSettings, kAck, 0, ""));
    if (got.type == kPing && (got.flags & kAck) == 0)
      open = connection.send(frame(kPing, kAck, 0, got.payload));
    // The request is whole: with its headers, or with the last of its body.
    if ((got.type != kHeaders && got.type != kData) || (got.flags & kEndStream) == 0) continue;
    const Do what = script_(number_of_connection, ++requests_);
    if (what == Do::kAnswer || what == Do::kAnswerAndGo) {
      last = got.stream;
      ++answered_;
      open = connection.send(frame(kHeaders, kEndHeaders, got.stream, kStatus200) +
                             frame(kData, kEndStream, got.stream, std::to_string(number_of_connection)));
    }
    if (what == Do::kAnswer) continue;
    (void)connection.send(frame(kGoAway, 0, 0, big_endian(last, 4) + big_endian(0, 4)));
    pollfd parting{fd, POLLRDHUP, 0};
    if (what != Do::kRefuseAndEnd) (void)::poll(&parting, 1, kPartingMs);
    break;
  }
  ::shutdown(fd, SHUT_RDWR);
}

}  // namespace paceline::testing
