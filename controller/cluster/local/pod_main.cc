// paceline-pod COMMAND [ARG...]: the supervisor of one local pod. LocalCluster starts it (pod_protocol.h
// tells what is said on descriptor 3); it is no command for people.
//
// It starts COMMAND as the leader of a process group, tells how it began and ended, and sees to it that
// nothing of the pod is left when the command ends, when it is told to, or when the socket closes because
// LocalCluster's process died:
//   - the group gets the signals;
//   - as subreaper it inherits whatever left the group, and kills that, too;
//   - the command dies with it (PR_SET_PDEATHSIG; this process has one thread, so "parent thread" is no
//   trap).
// Small on purpose: it links nothing but libc, and starts in well under a millisecond.

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "controller/cluster/local/pod_protocol.h"

namespace {

using paceline::cluster::kSupervisorSocket;
using paceline::cluster::Notice;
using paceline::cluster::NoticeKind;
using paceline::cluster::Order;

constexpr std::int64_t kNever = INT64_MAX;
constexpr std::int64_t kSweepLimitNs = 3'000'000'000;  // for descendants that don't die (uninterruptible I/O)

std::int64_t now_ns() {
  timespec time;
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1'000'000'000LL + time.tv_nsec;
}

void send_notice(NoticeKind kind, int value, bool by_signal = false) {
  const Notice notice{kind, value, by_signal};
  // Nobody there: the loop sees the socket's end.
  (void)!::send(kSupervisorSocket, &notice, sizeof notice, MSG_NOSIGNAL);
}

// Starts the command and waits until exec has worked or not. Returns its pid, or minus an errno.
int start(char** command) {
  int result_pipe[2];
  if (::pipe2(result_pipe, O_CLOEXEC) != 0) return -errno;
  const pid_t self = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) return -errno;
  if (child == 0) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != self) ::_exit(127);
    send_notice(NoticeKind::kGroup, ::getpid());
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::execvp(command[0], command);
    const int error = errno;
    (void)!::write(result_pipe[1], &error, sizeof error);
    ::_exit(127);
  }
  ::setpgid(child, child);  // whoever of the two comes first
  ::close(result_pipe[1]);
  int error = 0;
  const ssize_t got = ::read(result_pipe[0], &error, sizeof error);
  ::close(result_pipe[0]);
  if (got != static_cast<ssize_t>(sizeof error)) return child;
  ::waitpid(child, nullptr, 0);
  return -error;
}

// Kills every direct child; those of a child become ours when it dies. False where the kernel doesn't list
// children.
bool kill_children() {
  std::FILE* list = std::fopen("/proc/thread-self/children", "re");
  if (list == nullptr) return false;
  int pid;
  while (std::fscanf(list, "%d", &pid) == 1) ::kill(pid, SIGKILL);
  std::fclose(list);
  return true;
}

// Until no descendant is left. A pid that is not reaped yet can't have been given to somebody else.
void sweep(pid_t group) {
  const std::int64_t give_up = now_ns() + kSweepLimitNs;
  sigset_t death;
  ::sigemptyset(&death);
  ::sigaddset(&death, SIGCHLD);
  while (now_ns() < give_up) {
    if (group > 0 && ::kill(-group, SIGKILL) != 0) group = 0;
    if (!kill_children() && group == 0) return;
    pid_t reaped;
    while ((reaped = ::waitpid(-1, nullptr, WNOHANG)) > 0) continue;
    if (reaped < 0) return;  // ECHILD
    const timespec moment{0, 20'000'000};
    ::sigtimedwait(&death, nullptr, &moment);
  }
}

class Loop {
 public:
  Loop(pid_t child, int signals) : child_(child), signals_(signals) {}

  // Returns when the command has ended or our owner is gone.
  void run() {
    for (;;) {
      pollfd polled[2] = {{kSupervisorSocket, POLLIN, 0}, {signals_, POLLIN, 0}};
      const int ready = ::poll(polled, 2, timeout_ms());
      if (ready < 0 && errno != EINTR) return;
      if (now_ns() >= kill_at_) {
        ::kill(-child_, SIGKILL);
        kill_at_ = kNever;
      }
      if (ready <= 0) continue;
      if (polled[1].revents != 0) read_signal();
      if (ended()) return;
      if (polled[0].revents != 0 && !read_order()) return;
    }
  }

 private:
  int timeout_ms() const {
    if (kill_at_ == kNever) return -1;
    const std::int64_t left = kill_at_ - now_ns();
    return left <= 0 ? 0 : static_cast<int>(left / 1'000'000) + 1;
  }

  void read_signal() {
    signalfd_siginfo info;
    if (::read(signals_, &info, sizeof info) != static_cast<ssize_t>(sizeof info)) return;
    if (info.ssi_signo != SIGCHLD) ::kill(-child_, static_cast<int>(info.ssi_signo));
  }

  // The command is looked at without being reaped, so that its group's number stays its own until the group
  // is killed.
  bool ended() const {
    siginfo_t info;
    info.si_pid = 0;
    while (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0) {
      if (info.si_pid == child_) {
        send_notice(NoticeKind::kEnded, info.si_status, info.si_code != CLD_EXITED);
        return true;
      }
      ::waitpid(info.si_pid, nullptr, WNOHANG);
      info.si_pid = 0;
    }
    return false;
  }

  // False: the socket has ended.
  bool read_order() {
    Order order;
    const ssize_t got = ::recv(kSupervisorSocket, &order, sizeof order, MSG_DONTWAIT);
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    if (got != static_cast<ssize_t>(sizeof order)) return false;
    ::kill(-child_, SIGTERM);
    ::kill(-child_, SIGCONT);  // one that is stopped may still end in order
    const std::int64_t at = now_ns() + order.grace_ns;
    if (at < kill_at_) kill_at_ = at;
    return true;
  }

  const pid_t child_;
  const int signals_;
  std::int64_t kill_at_ = kNever;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--version") == 0) {
    std::puts("paceline-pod " PACELINE_VERSION);
    return 0;
  }
  if (argc < 2 || ::fcntl(kSupervisorSocket, F_SETFD, FD_CLOEXEC) != 0) {
    std::fputs("paceline-pod is started by paceline itself; use `paceline run job.yaml`\n", stderr);
    return 2;
  }
  const char* const version = std::getenv("PACELINE_VERSION");
  if (version != nullptr && std::strcmp(version, PACELINE_VERSION) != 0) {
    std::fprintf(stderr, "%s is version " PACELINE_VERSION ", paceline is version %s\n", argv[0], version);
    send_notice(NoticeKind::kOtherVersion, 0);
    return 0;
  }
  ::close_range(kSupervisorSocket + 1, ~0U, 0);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  ::prctl(PR_SET_PDEATHSIG, SIGCONT);  // one that is stopped wakes up to see its owner gone, and cleans up
  sigset_t watched;
  ::sigemptyset(&watched);
  for (const int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT}) ::sigaddset(&watched, signal);
  ::sigprocmask(SIG_BLOCK, &watched, nullptr);
  const int signals = ::signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);

  const int child = signals < 0 ? -errno : start(argv + 1);
  if (child < 0) {
    send_notice(NoticeKind::kStartError, -child);
    ::_exit(0);
  }
  send_notice(NoticeKind::kStarted, child);
  Loop(child, signals).run();
  sweep(child);
  ::_exit(0);
}
