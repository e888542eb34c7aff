#pragma once

// Whole numbers as people write them, in decimal digits. Libraries take one that begins with a zero for octal
// (010 is 8 to them), and 0x10 for 16: neither is a number here. Pure.

#include <charconv>
#include <string>
#include <string_view>

#include "base/text.h"

namespace paceline {

// 010, -08, 0x10, 00.5; of a fraction one zero is its own.
inline bool begins_with_a_zero(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  return text.size() > 1 && text[0] == '0' && text[1] != '.' && text[1] != 'e' && text[1] != 'E';
}

// What is wrong with `text` as a number with least <= it <= most, for an error; empty: nothing.
template <typename Number>
std::string whole_number_fault(std::string_view text, Number least, Number most) {
  Number value = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  const bool octal = begins_with_a_zero(text);
  if (!octal && read.ec == std::errc() && read.ptr == end && value >= least && value <= most) return "";
  return str_cat("\"", text, "\" is no whole number from ", least, " to ", most,
                 octal ? ": it begins with a zero" : "");
}

}  // namespace paceline
