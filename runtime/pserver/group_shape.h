#pragma once

// How a view's group is cut into workers and servers. Pure.

#include <string>

#include "absl/status/status.h"
#include "runtime/collective/fabric.h"
#include "runtime/pserver/client.h"

namespace paceline::pserver {

// INVALID_ARGUMENT: other numbers, or this member is not what it should be.
absl::Status check_shape(const collective::Group& group, const ClientOptions& options, bool server);
// "rank 2 (ps-0)"
std::string name_of(const collective::Group& group, int rank);

}  // namespace paceline::pserver
