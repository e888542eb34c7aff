#pragma once

// Ranks of a group as processes that the test forks, each with a socket between it and the test.

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "runtime/collective/fabric.h"
#include "tests/support/address_bytes.h"

namespace paceline::collective {

inline bool send_all(int fd, const void* data, std::size_t bytes) {
  return ::send(fd, data, bytes, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes);
}
inline bool receive_all(int fd, void* data, std::size_t bytes) {
  return ::recv(fd, data, bytes, MSG_WAITALL) == static_cast<ssize_t>(bytes);
}
inline absl::Status test_is_gone() {
  return absl::InternalError("the test is gone");
}

class RankProcesses {
 public:
  // Each process calls `body`, which calls meet(), and ends behind it.
  RankProcesses(int ranks, const std::function<void(int rank, int socket)>& body) {
    for (int r = 0; r < ranks; ++r) {
      int pair[2];
      EXPECT_EQ(0, ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair));
      const pid_t pid = ::fork();
      if (pid == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        body(r, pair[1]);
        ::_exit(0);
      }
      ::close(pair[1]);
      pids_.push_back(pid);
      sockets_.emplace_back(pair[0]);
    }
    std::vector<std::byte> all(sockets_.size() * kAddressBytes);
    for (std::size_t r = 0; r < sockets_.size(); ++r) {
      EXPECT_TRUE(receive_all(sockets_[r].get(), all.data() + r * kAddressBytes, kAddressBytes));
    }
    for (const UniqueFd& socket : sockets_) EXPECT_TRUE(send_all(socket.get(), all.data(), all.size()));
  }
  ~RankProcesses() {
    for (const pid_t pid : pids_) ::kill(pid, SIGKILL);
    for (const pid_t pid : pids_) ::waitpid(pid, nullptr, 0);
  }
  RankProcesses(const RankProcesses&) = delete;
  RankProcesses& operator=(const RankProcesses&) = delete;

  void signal(int r, int number) const { ASSERT_EQ(0, ::kill(pids_[static_cast<std::size_t>(r)], number)); }
  int socket(int r) const { return sockets_[static_cast<std::size_t>(r)].get(); }
  template <typename Report>
  Report report(int r) const {
    Report report;
    EXPECT_TRUE(receive_all(socket(r), &report, sizeof(report))) << "rank " << r;
    return report;
  }

 private:
  std::vector<pid_t> pids_;
  std::vector<UniqueFd> sockets_;
};

// In a rank's process: the group of all ranks, which have these names.
inline absl::StatusOr<Group> meet(const Fabric& fabric, TransportKind transport, int rank,
                                  const std::vector<std::string>& names, int socket) {
  const std::vector<std::byte> mine = pack(fabric.address());
  if (!send_all(socket, mine.data(), mine.size())) return test_is_gone();
  Group group;
  group.generation = Generation{1};
  group.rank = rank;
  group.transport = transport;
  for (const std::string& name : names) {
    std::byte bytes[kAddressBytes];
    if (!receive_all(socket, bytes, sizeof(bytes))) return test_is_gone();
    group.members.push_back({name, unpack(bytes)});
  }
  return group;
}

}  // namespace paceline::collective
