#pragma once

// Checks of numbers on a command line, instead of the library's own, which let through: not-a-number, whole
// numbers that are negative or too large for their type, and octal ones. Each option of a whole number has
// one.

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "absl/strings/numbers.h"
#include "base/text.h"
#include "base/whole_number.h"

namespace paceline::cli {

// least <= value <= most. `range`, where it is given, says so in the user's words.
inline CLI::Validator number_between(double least, double most, const std::string& range = "") {
  const std::string allowed = range.empty() ? str_cat(least, " to ", most) : range;
  return CLI::Validator(
      [least, most, allowed](std::string& text) {
        double value = 0;
        const bool octal = begins_with_a_zero(text);
        if (!octal && absl::SimpleAtod(text, &value) && value >= least && value <= most) return std::string();
        return str_cat("\"", text, "\" is no number from ", allowed, octal ? ": it begins with a zero" : "");
      },
      "");
}

// above < value <= most.
inline CLI::Validator number_above(double above, double most) {
  return CLI::Validator(
      [above, most](std::string& text) {
        double value = 0;
        const bool octal = begins_with_a_zero(text);
        if (!octal && absl::SimpleAtod(text, &value) && value > above && value <= most) return std::string();
        return str_cat("\"", text, "\" is no number above ", above, " and up to ", most,
                       octal ? ": it begins with a zero" : "");
      },
      "");
}

// least <= value <= most, in decimal digits.
template <typename Number>
CLI::Validator whole_number_between(Number least, Number most) {
  return CLI::Validator(
      [least, most](const std::string& text) { return whole_number_fault(text, least, most); }, "");
}

// 0 to 2^64 - 1.
inline CLI::Validator whole_number() {
  return whole_number_between<std::uint64_t>(0, UINT64_MAX);
}

}  // namespace paceline::cli
