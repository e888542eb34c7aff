#include "cli/cluster/interrupt.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include "base/file.h"
#include "base/status.h"

namespace paceline::cli {

absl::StatusOr<UniqueFd> take_signals(std::initializer_list<int> signals) {
  sigset_t taken;
  sigemptyset(&taken);
  for (const int signal : signals) sigaddset(&taken, signal);
  UniqueFd fd(::signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd.valid()) return errno_status(errno, "a file descriptor for ctrl-C");
  ::pthread_sigmask(SIG_BLOCK, &taken, nullptr);
  return fd;
}

absl::StatusOr<std::unique_ptr<Interrupt>> Interrupt::open(int exit_code) {
  UniqueFd ended(::eventfd(0, EFD_CLOEXEC));
  if (!ended.valid()) return errno_status(errno, "a file descriptor for ctrl-C");
  PL_ASSIGN_OR_RETURN(UniqueFd signals, take_signals({SIGINT, SIGTERM}));
  return std::unique_ptr<Interrupt>(new Interrupt(std::move(signals), std::move(ended), exit_code));
}

Interrupt::Interrupt(UniqueFd signals, UniqueFd ended, int exit_code)
    : signals_(std::move(signals)), ended_(std::move(ended)) {
  thread_ = std::jthread([this, exit_code] { wait(exit_code); });
}

Interrupt::~Interrupt() {
  const std::uint64_t one = 1;
  (void)!::write(ended_.get(), &one, sizeof(one));
  thread_.join();
}

void Interrupt::wait(int exit_code) {
  pollfd waits[] = {{ended_.get(), POLLIN, 0}, {signals_.get(), POLLIN, 0}};
  while (::poll(waits, 2, -1) < 0) {
  }
  if (waits[0].revents != 0) return;
  signalfd_siginfo signal{};
  (void)!::read(signals_.get(), &signal, sizeof(signal));
  source_.request_stop();
  const int grace_ms =
      static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(kGrace).count());
  if (::poll(waits, 2, grace_ms) > 0 && waits[0].revents != 0) return;
  std::_Exit(exit_code);
}

}  // namespace paceline::cli
