#pragma once

// One connection to a server of this machine, for tests: sends bytes, and reads until something is there.

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/unique_fd.h"

namespace paceline {

class HttpReader {
 public:
  explicit HttpReader(int port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const timeval patience{.tv_sec = 60, .tv_usec = 0};
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(fd_.get(), reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
  }

  void send(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t sent = ::send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL);
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
  const std::string& rest() {
    while (receive()) {
    }
    return read_;
  }
  void forget() { read_.clear(); }

 private:
  bool receive() {
    char buffer[16 << 10];
    const ssize_t n = ::recv(fd_.get(), buffer, sizeof(buffer), 0);
    if (n > 0) read_.append(buffer, static_cast<std::size_t>(n));
    return n > 0;
  }

  UniqueFd fd_;
  std::string read_;
};

}  // namespace paceline
