#pragma once

// Checks of a job's bytes before a YAML parser sees them. Pure; internal to controller/api.

#include <optional>
#include <string>
#include <string_view>

#include "controller/api/diagnostic.h"

namespace paceline::api {

// The first thing that makes `text` no readable file: too long, a line too long, a NUL or another control
// character, not UTF-8.
std::optional<Diagnostic> check_source_text(std::string_view text);

// Without the UTF-8 byte order mark that some editors write.
std::string_view skip_byte_order_mark(std::string_view text);

// "U+2212 at 10:44" for the first character beyond ASCII that stands on line `line` of `text` from byte
// `column` on, before a comment, and also in `among`; empty: there is none. Many look like an ASCII
// character.
std::string beyond_ascii(std::string_view text, int line, int column, std::string_view among);

bool is_utf8(std::string_view text);

}  // namespace paceline::api
