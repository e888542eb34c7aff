#pragma once

// One connection to a server of this machine, for tests: sends bytes, and reads until something is there.

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/unique_fd.h"

namespace paceline {

class HttpReader {
 public:
  // By a connection from this address of the loopback device.
  explicit HttpReader(int port, in_addr_t from = INADDR_LOOPBACK)
      : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const timeval patience{.tv_sec = 60, .tv_usec = 0};
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    sockaddr_in own{}, to{};
    own.sin_family = to.sin_family = AF_INET;
    own.sin_addr.s_addr = htonl(from);
    if (from != INADDR_LOOPBACK) {
      EXPECT_EQ(::bind(fd_.get(), reinterpret_cast<sockaddr*>(&own), sizeof(own)), 0);
    }
    to.sin_port = htons(static_cast<std::uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(fd_.get(), reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
    const int on = 1;  // as browsers: a handshake's end and a request are two small pieces
    ::setsockopt(fd_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  }
  // By TLS, to a server that this authority (PEM) has signed a certificate for localhost for.
  HttpReader(int port, const std::string& authority) : HttpReader(port) {
    const std::unique_ptr<SSL_CTX, Free> context(SSL_CTX_new(TLS_client_method()));
    const std::unique_ptr<BIO, Free> text(
        BIO_new_mem_buf(authority.data(), static_cast<int>(authority.size())));
    const std::unique_ptr<X509, Free> root(PEM_read_bio_X509(text.get(), nullptr, nullptr, nullptr));
    EXPECT_EQ(X509_STORE_add_cert(SSL_CTX_get_cert_store(context.get()), root.get()), 1);
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
    tls_.reset(SSL_new(context.get()));
    SSL_set1_host(tls_.get(), "localhost");
    SSL_set_fd(tls_.get(), fd_.get());
    trusts_ = SSL_connect(tls_.get()) == 1;
  }
  ~HttpReader() {
    if (trusts_ && tls_ != nullptr) SSL_shutdown(tls_.get());
  }
  HttpReader(HttpReader&&) = default;

  bool trusts() const { return trusts_; }
  int fd() const { return fd_.get(); }

  void send(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t sent = tls_ != nullptr ? SSL_write(tls_.get(), text.data(), static_cast<int>(text.size()))
                                           : ::send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;  // it has closed already
      text.remove_prefix(static_cast<std::size_t>(sent));
    }
  }
  // All that has come, once `text` is in it, or the other side has closed.
  const std::string& until(std::string_view text) {
    std::size_t searched = 0;
    while (read_.find(text, searched - std::min(searched, text.size())) == std::string::npos) {
      searched = read_.size();
      if (!receive()) break;
    }
    return read_;
  }
  void at_least(std::size_t bytes) {
    while (read_.size() < bytes && receive()) {
    }
  }
  const std::string& rest() {
    while (receive()) {
    }
    return read_;
  }
  void forget() { read_.clear(); }

 private:
  struct Free {
    void operator()(SSL* tls) const { SSL_free(tls); }
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
    void operator()(BIO* bio) const { BIO_free(bio); }
    void operator()(X509* certificate) const { X509_free(certificate); }
  };

  bool receive() {
    char buffer[16 << 10];
    const ssize_t n = tls_ != nullptr ? SSL_read(tls_.get(), buffer, sizeof(buffer))
                                      : ::recv(fd_.get(), buffer, sizeof(buffer), 0);
    if (n > 0) read_.append(buffer, static_cast<std::size_t>(n));
    return n > 0;
  }

  UniqueFd fd_;
  std::unique_ptr<SSL, Free> tls_;
  bool trusts_ = true;
  std::string read_;
};

}  // namespace paceline
