#include "base/sanitize.h"

#include <algorithm>

namespace paceline {

std::size_t utf8_bytes(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < size) return 0;
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  // Overlong forms, surrogates, and what is beyond Unicode.
  const bool overlong = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xf0 && byte(1) < 0x90);
  const bool beyond = (first == 0xed && byte(1) > 0x9f) || (first == 0xf4 && byte(1) > 0x8f);
  return overlong || beyond ? 0 : size;
}

bool is_control(std::string_view character) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(character[i]); };
  if (character.size() == 1) return (byte(0) < 0x20 && byte(0) != '\n' && byte(0) != '\t') || byte(0) == 0x7f;
  if (character.size() == 2) return byte(0) == 0xc2 && byte(1) < 0xa0;
  if (character.size() != 3 || byte(0) != 0xe2) return false;
  const bool separates_or_turns = byte(1) == 0x80 && byte(2) >= 0xa8 && byte(2) <= 0xae;  // U+2028 to U+202E
  const bool isolates = byte(1) == 0x81 && byte(2) >= 0xa6 && byte(2) <= 0xa9;            // U+2066 to U+2069
  return separates_or_turns || isolates;
}

std::string utf8_prefix(std::string_view text, std::size_t most) {
  if (text.size() <= most) return std::string(text);
  constexpr unsigned kContinuationMask = 0xc0, kContinuation = 0x80;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & kContinuationMask) == kContinuation) --most;
  return std::string(text.substr(0, most));
}

std::string sanitize(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t bytes = utf8_bytes(text);
    if (bytes > 0 && !is_control(text.substr(0, bytes))) {
      out.append(text.substr(0, bytes));
    } else {
      for (std::size_t i = 0; i < std::max<std::size_t>(bytes, 1); ++i) {
        constexpr char kDigits[] = "0123456789abcdef";
        const auto byte = static_cast<unsigned char>(text[i]);
        out.append("\\x") += {kDigits[byte >> 4], kDigits[byte & 15]};
      }
    }
    text.remove_prefix(std::max<std::size_t>(bytes, 1));
  }
  return out;
}

}  // namespace paceline
