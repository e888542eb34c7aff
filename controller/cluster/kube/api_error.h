#pragma once

// What an answer that is no 2xx means: a status whose code callers branch on, with the API server's own
// words. Pure.
//
//   401 UNAUTHENTICATED    403 PERMISSION_DENIED     404 NOT_FOUND             410 OUT_OF_RANGE (expired)
//   400, 413, 422 INVALID_ARGUMENT     409 ALREADY_EXISTS where its reason is AlreadyExists, else ABORTED
//   405, 406, 415 UNIMPLEMENTED        429, 5xx UNAVAILABLE        anything else UNKNOWN
//
// Where the server asked us to stay away for a time, the status says how long (base/retry_after.h).

#include <cstddef>
#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "controller/cluster/kube/json.h"
#include "controller/cluster/kube/transport.h"

namespace paceline::kube {

inline constexpr std::size_t kMaxErrorBytes = 1024;  // of the API server's words

// "CONTEXT: 404 NotFound: WORDS". REQUIRES: response.status is no 2xx.
absl::Status error_of(const Response& response, std::string_view context = {});

// Of a Status object, as in an ERROR event of a watch; UNKNOWN where it is none.
absl::Status error_of(const Json& status_object);

// The Status object that the server answered with: reason, message, details.causes. Nothing where the answer
// was none (a path that the server does not know is plain text), or larger than kMaxKeptStatusBytes.
std::optional<Json> status_object_of(const absl::Status& status);
inline constexpr std::size_t kMaxKeptStatusBytes = 64u << 10;

// Nothing can be created any more in the namespace that a request was about: it is being deleted.
bool namespace_ends(const absl::Status& status);

// A quota refuses what was to be created.
bool is_over_quota(const absl::Status& status);

const char* method_name(Method method);

// "GET /api/v1/pods", without the query.
std::string describe(const Request& request);

}  // namespace paceline::kube
