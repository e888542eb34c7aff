#pragma once

// The authority that all replicas of a controller share: a Secret (type kubernetes.io/tls) that the first of
// them makes. Thread-safe.

#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "controller/certificates/authority.h"
#include "controller/cluster/kube/api_client.h"

namespace paceline::certificates {

inline constexpr Duration kAuthorityValid = std::chrono::hours(24 * 3650);

// The Secret is made where it is not there. FAILED_PRECONDITION: what it has is no authority, or has expired;
// the message says what to do. Others: the API server's answer.
absl::StatusOr<KeyPair> find_or_make_authority(kube::ApiClient& api, const std::string& ns,
                                               const std::string& secret, WallTime now);

}  // namespace paceline::certificates
