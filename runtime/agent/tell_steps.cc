#include "runtime/agent/tell_steps.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/process_end.h"
#include "base/program.h"
#include "base/random.h"
#include "base/text.h"
#include "base/unique_fd.h"
#include "runtime/agent/step_feed.h"
#include "runtime/agent/step_socket.h"
#include "runtime/member/environment.h"
#include "runtime/member/membership.h"

namespace paceline::agent {

namespace {

constexpr std::chrono::seconds kAttachLimit(60);
constexpr std::chrono::seconds kEndLimit(5);  // once the program has ended
constexpr int kLookMs = 500;                  // whether the membership lasts
constexpr int kNotStarted = 127;              // as shells have it

// The process beside the program.
class Teller {
 public:
  Teller(const member::Environment& environment, StepSocket socket, UniqueFd program, pid_t pid)
      : environment_(environment), socket_(std::move(socket)), program_(std::move(program)), pid_(pid) {}

  void run() {
    auto membership = attach();
    if (!membership.ok())
      return logger_.warning(str_cat("nobody hears of its steps: ", membership.status().message()));
    membership_ = *std::move(membership);
    membership_->progress().set_phase(v1::TRAINING);
    while (membership_->status().ok() && !wait()) take();
    take();
    end_within(kEndLimit, kExitFinished);
    v1::Leaving leaving;
    leaving.set_outcome(v1::Leaving::FINISHED);
    (void)membership_->leave(leaving, Deadline::after(clock_.now(), kEndLimit));
  }

 private:
  absl::StatusOr<std::unique_ptr<member::Membership>> attach() {
    member::Presence presence;
    presence.pid = pid_;
    member::MembershipOptions options;
    options.logger = logger_;
    return member::Membership::attach(environment_, presence, options, clock_,
                                      Deadline::after(clock_.now(), kAttachLimit));
  }
  // Until there is something to take. Whether the program has ended, as far as it is known.
  bool wait() {
    pollfd waits[2] = {{socket_.fd(), POLLIN, 0}, {program_.get(), POLLIN, 0}};
    return ::poll(waits, 2, kLookMs) > 0 && waits[1].revents != 0;
  }
  void take() {
    while (const auto datagram = socket_.receive()) {
      for (const StepLine& line : feed_.take(*datagram))
        membership_->progress().step_applied({.step = line.step, .times = line.times});
      for (const std::string& warning : feed_.warnings()) logger_.warning(warning);
    }
  }

  const member::Environment& environment_;
  StepSocket socket_;
  const UniqueFd program_;
  const pid_t pid_;
  const SystemClock clock_;
  const Logger logger_ = Logger::to_stderr(environment_.name(), environment_.log_level);
  StepFeed feed_;
  std::unique_ptr<member::Membership> membership_;
};

// Another process, which is nobody's child: the program finds none that it has not started.
bool start_beside(const std::function<void()>& body) {
  const pid_t between = ::fork();
  if (between < 0) return false;
  if (between == 0) {
    const pid_t beside = ::fork();
    if (beside != 0) ::_exit(beside < 0 ? 1 : 0);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) ::signal(signal, SIG_IGN);  // it ends with the program
    body();
    std::fflush(nullptr);
    ::_exit(0);
  }
  int status = 0;
  while (::waitpid(between, &status, 0) < 0 && errno == EINTR) continue;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// Beside the program's container.
int hear(member::Environment& environment) {
  const char* const name = std::getenv("PACELINE_STEPS");
  auto socket = StepSocket::bind(name == nullptr ? "" : name);
  if (!socket.ok()) {
    std::fprintf(stderr, "PACELINE_STEPS: %s\n", std::string(socket.status().message()).c_str());
    return kExitConfiguration;
  }
  // Its container may be started again in the same pod, and its heartbeats count from 1 then.
  environment.start = 0;
  for (const char byte : random_bytes(3))
    environment.start = environment.start << 8 | static_cast<unsigned char>(byte);
  Teller(environment, *std::move(socket), UniqueFd(), -1).run();
  return kExitEnded;
}

int become(const member::Environment& environment, char** command) {
  const std::string name = str_cat("@paceline-steps-", environment.pod_uid);
  const pid_t self = ::getpid();
  UniqueFd program(static_cast<int>(::syscall(SYS_pidfd_open, self, 0)));
  auto socket = StepSocket::bind(name);
  const auto warn = [&](const std::string& why) {
    std::fprintf(stderr, "%s: nobody hears of its steps: %s\n", environment.name().c_str(), why.c_str());
  };
  if (!program.valid() || !socket.ok()) {
    warn(socket.ok() ? std::strerror(errno) : std::string(socket.status().message()));
  } else if (start_beside([&] {
               (void)run_main("steps", kExitFailed, [&] {
                 Teller(environment, *std::move(socket), std::move(program), self).run();
                 return kExitFinished;
               });
             })) {
    ::setenv("PACELINE_STEPS", name.c_str(), 1);
  } else {
    warn("no process can be started");
  }
  ::execvp(command[0], command);
  std::fprintf(stderr, "%s: %s can't be started: %s\n", environment.name().c_str(), command[0],
               std::strerror(errno));
  return kNotStarted;
}

}  // namespace

int tell_steps(int argc, char** command) {
  auto environment = member::parse_environment(member::process_environment());
  if (!environment.ok()) {
    std::fprintf(stderr, "%s\n", std::string(environment.status().message()).c_str());
    return kExitConfiguration;
  }
  if (argc < 1) return run_main("steps", kExitFailed, [&] { return hear(*environment); });
  return become(*environment, command);
}

}  // namespace paceline::agent
