#pragma once

// Checks of what comes from outside before the core looks at it. Pure. The ..._error functions return what is
// wrong, in words; empty: fine.

#include <cstddef>
#include <string>

#include "controller/coordinator/core.h"

namespace paceline::coordinator {

std::string hello_error(const v1::Hello& hello, const CoreConfig& config);
// Its pod is of a later attempt than this coordinator's, which goes by an old copy of the job then.
bool is_of_later_attempt(const v1::Hello& hello, const CoreConfig& config);

// The first `limit` bytes of a text, fewer where that would split a UTF-8 character (protobuf refuses to
// parse halves).
std::string cut(const std::string& text, std::size_t limit = kMaxTextBytes);

// `generation` is the newest that was given out.
std::string heartbeat_error(const v1::Heartbeat& heartbeat, Generation generation);

}  // namespace paceline::coordinator
