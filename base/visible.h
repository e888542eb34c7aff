#pragma once

// What strangers wrote, on its way to a terminal: files, names, members, servers. The rule: a terminal gets
// it visible(), and so does every message, wherever it goes; what is asked for goes to a pipe or a file as it
// is. Pure.

#include <cstddef>
#include <string>
#include <string_view>

namespace paceline {

// Bytes of the well-formed UTF-8 character at the front of `text`; 0: there is none. REQUIRES: not empty.
std::size_t utf8_bytes(std::string_view text);

// Control characters (also those beyond ASCII) and bytes that are not UTF-8 as \x1b; tabs stay, newlines too.
std::string visible(std::string_view text);

}  // namespace paceline
