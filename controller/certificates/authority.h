#pragma once

// X.509 certificates (RFC 5280) for servers, with P-256 keys, signed by an authority of our own. Thread-safe.

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"

namespace paceline::certificates {

struct KeyPair {
  std::string certificate_pem, key_pem;  // the key is never logged
};

// Signs itself; its certificate is what clients trust. Times are whole seconds; it is valid an hour before
// `now`, for clocks that differ.
absl::StatusOr<KeyPair> make_authority(const std::string& common_name, WallTime now, Duration valid);

// For a server with these names: "DNS:localhost", "IP:127.0.0.1". INVALID_ARGUMENT: a name or the authority
// is none.
absl::StatusOr<KeyPair> issue(const KeyPair& authority, const std::vector<std::string>& names, WallTime now,
                              Duration valid);

// "DNS:paceline.svc", "IP:10.0.0.1" or "IP:::1": the host of HOST:PORT or [HOST]:PORT. Empty: there is none.
std::string alternative_name_of(std::string_view address);

// The end of the first certificate in the text. INVALID_ARGUMENT: there is none.
absl::StatusOr<WallTime> expiry_of(const std::string& certificate_pem);

}  // namespace paceline::certificates
