#include "base/hex.h"

namespace paceline {

std::string hex(std::span<const std::byte> bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const std::byte byte : bytes) {
    text += kDigits[std::to_integer<unsigned>(byte >> 4)];
    text += kDigits[std::to_integer<unsigned>(byte & std::byte{15})];
  }
  return text;
}

std::string hex(std::string_view bytes) {
  return hex(std::as_bytes(std::span(bytes)));
}

}  // namespace paceline
