#pragma once

// How a client or a server is closed from any thread: the first reason stays, and a descriptor becomes
// readable, for good, so that whoever polls stops. Thread-safe.

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "runtime/collective/closing.h"

namespace paceline::pserver {

class CloseSignal {
 public:
  // The errors of making an eventfd.
  static absl::StatusOr<UniqueFd> make_descriptor();
  explicit CloseSignal(UniqueFd descriptor) : descriptor_(std::move(descriptor)) {}

  // OK becomes ABORTED. Returns the reason that stays.
  absl::Status close(absl::Status reason);
  bool is_closed() const { return closing_.is_closed(); }
  absl::Status reason() const { return closing_.reason(); }
  int fd() const { return descriptor_.get(); }

 private:
  collective::Closing closing_;
  UniqueFd descriptor_;
};

}  // namespace paceline::pserver
