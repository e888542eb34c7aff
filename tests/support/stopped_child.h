#pragma once

// A process of the test's own that stands still, until it is killed.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace paceline {

class StoppedChild {
 public:
  StoppedChild() : pid_(::fork()) {
    if (pid_ == 0) {
      ::raise(SIGSTOP);
      ::_exit(0);
    }
    EXPECT_EQ(::waitpid(pid_, nullptr, WUNTRACED), pid_);
  }
  ~StoppedChild() {
    kill();
    ::waitpid(pid_, nullptr, 0);
  }
  StoppedChild(const StoppedChild&) = delete;
  StoppedChild& operator=(const StoppedChild&) = delete;

  // Until the destructor waits for it, something of it stays.
  void kill() {
    ::kill(pid_, SIGKILL);
    siginfo_t ended{};
    ::waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOWAIT);
  }
  pid_t pid() const { return pid_; }

 private:
  const pid_t pid_;
};

}  // namespace paceline
