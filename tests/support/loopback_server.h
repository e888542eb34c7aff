#pragma once

// What scripted servers share: a port on the loopback, a thread for each connection, and TLS of OpenSSL. All
// of it is gone when the server is stopped or destroyed. Thread-safe.

#include <openssl/ssl.h>

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <thread>

#include "base/guarded.h"
#include "base/unique_fd.h"
#include "tests/support/test_certificates.h"

namespace paceline {

struct SslFree {
  void operator()(SSL* ssl) const { ::SSL_free(ssl); }
  void operator()(SSL_CTX* context) const { ::SSL_CTX_free(context); }
  void operator()(X509* certificate) const { ::X509_free(certificate); }
};
template <typename T>
using Ssl = std::unique_ptr<T, SslFree>;

Ssl<X509> certificate_of(const std::string& pem);
Ssl<SSL_CTX> server_context(const KeyPair& server);

class LoopbackServer {
 public:
  // In a connection's thread, where SIGPIPE is blocked (OpenSSL writes without MSG_NOSIGNAL); it is shut down
  // when this returns. `number`: counted from 1 over the server's life. `stopped`: readable from stop() on.
  using Serve = std::function<void(int fd, int number, int stopped)>;

  // Listens at once.
  explicit LoopbackServer(Serve serve);
  ~LoopbackServer() { stop(); }
  LoopbackServer(const LoopbackServer&) = delete;
  LoopbackServer& operator=(const LoopbackServer&) = delete;

  int port() const { return port_; }
  int connections() const { return connections_; }  // accepted so far
  // Closes the port and every connection. start() takes the same port again.
  void stop();
  void start();

 private:
  struct Peer {
    UniqueFd socket;
    std::thread thread;
  };
  void listen();
  void accept_all();
  void serve(int fd, int number);

  const Serve serve_;
  int port_ = 0;
  std::atomic<int> connections_{0};
  UniqueFd listener_, stopped_;
  std::thread acceptor_;
  Guarded<std::list<Peer>> peers_;  // the acceptor adds, stop() removes
};

}  // namespace paceline
