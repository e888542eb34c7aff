#pragma once

// After how long without an answer the TCP connections of this process end, as tests see it.

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <filesystem>
#include <set>
#include <string>

namespace paceline {

// Each connected end's, in ms; 0: the system's. All of them must notice a peer that is gone while they are
// idle, too.
inline std::multiset<int> unanswered_limits() {
  std::multiset<int> limits;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::stoi(entry.path().filename());
    sockaddr_storage peer{};
    socklen_t length = sizeof(peer);
    if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &length) != 0 || peer.ss_family == AF_UNIX) {
      continue;
    }
    int limit = -1, keeps = 0;
    length = sizeof(int);
    EXPECT_EQ(::getsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit, &length), 0);
    EXPECT_EQ(::getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &keeps, &length), 0);
    EXPECT_EQ(keeps, 1);
    limits.insert(limit);
  }
  return limits;
}

}  // namespace paceline
