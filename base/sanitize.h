#pragma once

// What strangers wrote, on its way to a terminal: files, names, members, servers. The rule: a terminal gets
// it sanitize(), and so does every message and view, wherever it goes; data that are asked for go to a pipe
// or a file as they are. Pure.

#include <cstddef>
#include <string>
#include <string_view>

namespace paceline {

// Bytes of the well-formed UTF-8 character at the front of `text`; 0: there is none. REQUIRES: not empty.
std::size_t utf8_bytes(std::string_view text);

// Whether the well-formed character does something to a terminal rather than stand there: a control character
// (also beyond ASCII) but for tab and newline, a separator of lines, a change of the text's direction.
bool is_control(std::string_view character);

// The longest front of `text` that has `most` bytes or fewer and does not end within a character.
std::string utf8_prefix(std::string_view text, std::size_t most);

// Characters that are is_control(), and bytes that are not UTF-8, byte by byte as \x1b.
std::string sanitize(std::string_view text);

}  // namespace paceline
