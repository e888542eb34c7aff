#include "runtime/pserver/close_signal.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "base/file.h"

namespace paceline::pserver {

absl::StatusOr<UniqueFd> CloseSignal::make_descriptor() {
  UniqueFd descriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!descriptor.valid()) return errno_status(errno, "an eventfd for the links to parameter servers");
  return descriptor;
}

absl::Status CloseSignal::close(absl::Status reason) {
  if (reason.ok()) reason = absl::AbortedError("the links to the parameter servers were closed");
  if (closing_.close(std::move(reason))) {
    const std::uint64_t one = 1;
    (void)!::write(descriptor_.get(), &one, sizeof(one));
  }
  return closing_.reason();
}

}  // namespace paceline::pserver
