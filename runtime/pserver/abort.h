#pragma once

// Why a peer closes, in its own words. Pure.

#include "absl/status/status.h"
#include "runtime/pserver/link.h"
#include "runtime/pserver/messages.h"

namespace paceline::pserver {

// The error that an Abort frame of `link` tells, about the rank that it blames, or about its sender where it
// blames none of the `members`. INVALID_ARGUMENT: the message is none.
absl::Status read_abort(const Link& link, Bytes message, std::size_t members);

}  // namespace paceline::pserver
