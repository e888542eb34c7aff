#include "tests/support/loopback_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/pem.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "base/check.h"

namespace paceline {

namespace {

struct PemFree {
  void operator()(EVP_PKEY* key) const { ::EVP_PKEY_free(key); }
  void operator()(BIO* bio) const { ::BIO_free(bio); }
};

std::unique_ptr<BIO, PemFree> reader_of(const std::string& pem) {
  return std::unique_ptr<BIO, PemFree>(::BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
}

}  // namespace

Ssl<X509> certificate_of(const std::string& pem) {
  return Ssl<X509>(::PEM_read_bio_X509(reader_of(pem).get(), nullptr, nullptr, nullptr));
}

Ssl<SSL_CTX> server_context(const KeyPair& server) {
  Ssl<SSL_CTX> context(::SSL_CTX_new(::TLS_server_method()));
  const Ssl<X509> certificate = certificate_of(server.certificate_pem);
  const std::unique_ptr<EVP_PKEY, PemFree> key(
      ::PEM_read_bio_PrivateKey(reader_of(server.key_pem).get(), nullptr, nullptr, nullptr));
  PL_CHECK(::SSL_CTX_use_certificate(context.get(), certificate.get()) == 1, "a server's certificate");
  PL_CHECK(::SSL_CTX_use_PrivateKey(context.get(), key.get()) == 1, "a server's key");
  return context;
}

LoopbackServer::LoopbackServer(Serve serve) : serve_(std::move(serve)) {
  start();
}

void LoopbackServer::start() {
  listen();
  acceptor_ = std::thread([this] { accept_all(); });
}

void LoopbackServer::stop() {
  if (!acceptor_.joinable()) return;
  ::eventfd_write(stopped_.get(), 1);
  acceptor_.join();
  listener_.reset();
  std::list<Peer> peers;
  peers.swap(*peers_.lock());
  for (const Peer& peer : peers) ::shutdown(peer.socket.get(), SHUT_RDWR);
  for (Peer& peer : peers) peer.thread.join();
}

void LoopbackServer::listen() {
  stopped_ = UniqueFd(::eventfd(0, EFD_CLOEXEC));
  listener_ = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int one = 1;
  ::setsockopt(listener_.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port_));
  socklen_t size = sizeof(address);
  PL_CHECK(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size) == 0,
           "a port on the loopback");
  PL_CHECK(::listen(listener_.get(), 1024) == 0, "a port to listen on");
  PL_CHECK(::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0, "its number");
  port_ = ntohs(address.sin_port);
}

void LoopbackServer::accept_all() {
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

void LoopbackServer::serve(int fd, int number) {
  sigset_t pipe;
  ::sigemptyset(&pipe);
  ::sigaddset(&pipe, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
  const int one = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
  serve_(fd, number, stopped_.get());
  ::shutdown(fd, SHUT_RDWR);
}

}  // namespace paceline
