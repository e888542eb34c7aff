#pragma once

// A socket that listens on "IP:PORT".

#include <string>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace paceline::web {

struct ListenSocket {
  UniqueFd fd;
  int port = 0;
};

// "127.0.0.1:8080", "[::1]:8080"; port 0: the system's choice; an empty host: all addresses.
// INVALID_ARGUMENT: the address; UNAVAILABLE: the system's reason.
absl::StatusOr<ListenSocket> listen_on(const std::string& address);

}  // namespace paceline::web
