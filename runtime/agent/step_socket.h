#pragma once

// A program tells of its steps here: a UNIX datagram socket of this network namespace, without a file. Who
// sends waits for nobody, and what nobody takes is refused to the sender by the kernel, which keeps a few
// datagrams; so neither a program nor this can be held up by the other one, and no disk is needed. One
// thread.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace paceline::agent {

inline constexpr std::size_t kMostDatagramBytes = std::size_t{64} << 10;  // of a longer one the front

class StepSocket {
 public:
  // `name`: "@..." as in PACELINE_STEPS, in the abstract namespace. Errors as errno_status().
  static absl::StatusOr<StepSocket> bind(const std::string& name);

  int fd() const { return fd_.get(); }  // readable: receive() has something; closed by exec
  // The next datagram, which stays until the next call; nothing: none is there.
  std::optional<std::string_view> receive();

 private:
  explicit StepSocket(UniqueFd fd) : fd_(std::move(fd)), buffer_(kMostDatagramBytes, '\0') {}
  UniqueFd fd_;
  std::string buffer_;
};

}  // namespace paceline::agent
