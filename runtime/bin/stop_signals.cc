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
#include <utility>

#include "base/file.h"
#include "base/process_end.h"
#include "base/status.h"

namespace paceline {

namespace {
constexpr Duration kLook = std::chrono::milliseconds(20);  // at whether something is still being saved
}  // namespace

absl::StatusOr<std::unique_ptr<StopSignals>> StopSignals::watch(trainer::StopRequest& request,
                                                                const Logger& logger, StopPatience patience) {
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
  return std::unique_ptr<StopSignals>(
      new StopSignals(request, logger, std::move(patience), std::move(signals), std::move(done)));
}

StopSignals::StopSignals(trainer::StopRequest& request, const Logger& logger, StopPatience patience,
                         UniqueFd signals, UniqueFd done)
    : request_(request),
      logger_(logger),
      patience_(std::move(patience)),
      signals_(std::move(signals)),
      done_(std::move(done)),
      thread_([this] { run(); }) {}

StopSignals::~StopSignals() {
  ::eventfd_write(done_.get(), 1);
  thread_.join();
}

bool StopSignals::wait_signal(Duration timeout) {
  std::array<pollfd, 2> fds = {pollfd{signals_.get(), POLLIN, 0}, pollfd{done_.get(), POLLIN, 0}};
  const int ready = ::poll(fds.data(), fds.size(), static_cast<int>(timeout / std::chrono::milliseconds(1)));
  if (ready <= 0) return false;
  ended_ = (fds[1].revents & POLLIN) != 0;
  signalfd_siginfo info;
  return !ended_ && ::read(signals_.get(), &info, sizeof(info)) == sizeof(info);
}

void StopSignals::run() {
  while (!ended_ && !wait_signal(std::chrono::hours(1))) {
  }
  if (ended_) return;
  logger_.info("asked to stop by a signal: after the step under way");
  request_.request();
  wait_signal(patience_.others);
  if (ended_) return;
  logger_.warning("stops without waiting for the others");
  request_.expire();
  wait_for_end();
  if (ended_) return;
  logger_.error(request_.saving() ? "ends in the middle of a checkpoint; the one before it is whole"
                                  : "could not stop in order");
  if (patience_.end_process != nullptr) return patience_.end_process();
  ::_exit(kExitEnded);
}

void StopSignals::wait_for_end() {
  bool said = false;
  Duration idle{};  // since the last look at which something was being saved
  std::uint64_t moves = request_.moves();
  for (Duration still{}; still < patience_.save && idle < patience_.others; still += kLook) {
    const std::uint64_t now = request_.moves();
    if (std::exchange(moves, now) != now) still = Duration::zero();
    idle = request_.saving() ? Duration::zero() : idle + kLook;
    if (idle == Duration::zero() && !std::exchange(said, true)) {
      logger_.warning(str_cat("waits for the checkpoint that is being written, as long as no ",
                              format_duration(patience_.save),
                              " pass in which nothing of it moves; a signal ends it at once"));
    }
    if (wait_signal(kLook) || ended_) return;
  }
}

}  // namespace paceline
