#include "runtime/bin/stop_signals.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>

#include "base/file.h"
#include "base/status.h"
#include "runtime/bin/run_member.h"

namespace paceline {

namespace {
constexpr int kPatienceMs = 2000;
}

absl::StatusOr<std::unique_ptr<StopSignals>> StopSignals::watch(trainer::StopRequest& request,
                                                                const Logger& logger) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  const int refused = ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  if (refused != 0) return errno_status(refused, "blocking SIGTERM");
  UniqueFd signals(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals.valid()) return errno_status(errno, "signalfd");
  UniqueFd done(::eventfd(0, EFD_CLOEXEC));
  if (!done.valid()) return errno_status(errno, "eventfd");
  return std::unique_ptr<StopSignals>(new StopSignals(request, logger, std::move(signals), std::move(done)));
}

StopSignals::StopSignals(trainer::StopRequest& request, const Logger& logger, UniqueFd signals, UniqueFd done)
    : request_(request),
      logger_(logger),
      signals_(std::move(signals)),
      done_(std::move(done)),
      thread_([this] { run(); }) {}

StopSignals::~StopSignals() {
  ::eventfd_write(done_.get(), 1);
  thread_.join();
}

bool StopSignals::wait_signal(int timeout_ms) {
  std::array<pollfd, 2> fds = {pollfd{signals_.get(), POLLIN, 0}, pollfd{done_.get(), POLLIN, 0}};
  const int ready = ::poll(fds.data(), fds.size(), timeout_ms);
  if (ready <= 0) return false;
  ended_ = (fds[1].revents & POLLIN) != 0;
  signalfd_siginfo info;
  return !ended_ && ::read(signals_.get(), &info, sizeof(info)) == sizeof(info);
}

void StopSignals::run() {
  while (!ended_ && !wait_signal(-1)) {
  }
  if (ended_) return;
  logger_.info("asked to stop by a signal: after the step under way");
  request_.request();
  wait_signal(kPatienceMs);
  if (ended_) return;
  logger_.warning("stops without waiting for the others");
  request_.expire();
  wait_signal(kPatienceMs);
  if (ended_) return;
  logger_.error("could not stop in order");
  ::_exit(kExitEnded);
}

}  // namespace paceline
