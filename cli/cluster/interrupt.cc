#include "cli/cluster/interrupt.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

#include "base/check.h"

namespace paceline::cli {

namespace {

sigset_t ending_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  return signals;
}

}  // namespace

Interrupt::Interrupt(int exit_code) {
  const sigset_t signals = ending_signals();
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signals_ = UniqueFd(::signalfd(-1, &signals, SFD_CLOEXEC));
  ended_ = UniqueFd(::eventfd(0, EFD_CLOEXEC));
  PL_CHECK(signals_.valid() && ended_.valid(), "two more file descriptors");
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
