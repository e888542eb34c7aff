#pragma once

// Whole numbers as people write them, in decimal digits. Libraries take one that begins with a zero for octal
// (010 is 8 to them), and 0x10 for 16: neither is a number here. Pure.

#include <charconv>
#include <string>
#include <string_view>

#include "base/text.h"

namespace paceline {

// What is wrong with `text` as a number with least <= it <= most, for an error; empty: nothing.
template <typename Number>
std::string whole_number_fault(std::string_view text, Number least, Number most) {
  Number value = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  const std::string_view digits = text.substr(text.starts_with('-') ? 1 : 0);
  const bool octal = digits.size() > 1 && digits[0] == '0';
  if (!octal && read.ec == std::errc() && read.ptr == end && value >= least && value <= most) return "";
  return str_cat("\"", text, "\" is no whole number from ", least, " to ", most,
                 octal ? ": it begins with a zero" : "");
}

}  // namespace paceline
