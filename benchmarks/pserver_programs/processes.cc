#include "processes.h"

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>

#include "base/check.h"

namespace bench {

namespace {

void write_all(int fd, const std::string& bytes) {
  PL_CHECK(::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()),
           "the other end reads");
}

std::string read_all(int fd, std::size_t count) {
  std::string bytes(count, '\0');
  if (::recv(fd, bytes.data(), count, MSG_WAITALL) != static_cast<ssize_t>(count)) ::_exit(1);
  return bytes;
}

}  // namespace

std::vector<std::string> Meeting::exchange(const std::string& mine) {
  PL_CHECK(mine.size() <= kTextBytes, "a text of a process is bounded");
  std::string padded = mine;
  padded.resize(kTextBytes);
  write_all(socket_, padded);
  std::vector<std::string> texts;
  for (int k = 0; k < processes_; ++k) texts.push_back(read_all(socket_, kTextBytes));
  return texts;
}

void Meeting::barrier() {
  (void)exchange("");
}

int run(int processes, const std::function<void(int, Meeting&)>& body) {
  std::vector<int> sockets;
  for (int index = 0; index < processes; ++index) {
    int pair[2];
    PL_CHECK(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0, "a socket pair");
    if (::fork() == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::close(pair[0]);
      for (const int other : sockets) ::close(other);
      Meeting meeting(pair[1], processes);
      body(index, meeting);
      std::fflush(stdout);
      ::_exit(0);
    }
    ::close(pair[1]);
    sockets.push_back(pair[0]);
  }
  // Passes texts on until the first process has ended.
  for (bool open = true; open;) {
    std::string all;
    for (const int socket : sockets) {
      std::string text(kTextBytes, '\0');
      open = open && ::recv(socket, text.data(), kTextBytes, MSG_WAITALL) == static_cast<ssize_t>(kTextBytes);
      all += text;
    }
    if (!open) break;
    for (const int socket : sockets) write_all(socket, all);
  }
  // Who still waits for a text of one that is gone ends, too.
  for (const int socket : sockets) ::close(socket);
  int failed = 0, status = 0;
  while (::wait(&status) > 0) failed |= status;
  return failed != 0 ? 1 : 0;
}

void print(const std::vector<long long>& nanoseconds) {
  for (std::size_t k = 0; k < nanoseconds.size(); ++k)
    std::printf("%s%lld", k == 0 ? "" : " ", nanoseconds[k]);
  std::printf("\n");
}

void print(const std::vector<long long>& nanoseconds, std::span<const std::string> told) {
  std::printf("steps ");
  print(nanoseconds);
  for (const std::string& each : told) std::printf("server %s\n", each.c_str());
}

long long now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace bench
