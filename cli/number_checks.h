#pragma once

// Checks of numbers on a command line that the library's own let through: not-a-number, and whole numbers
// that are negative or too large for their type.

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdint>
#include <string>

#include "absl/strings/numbers.h"
#include "base/text.h"

namespace paceline::cli {

// least <= value <= most. `range`, where it is given, says so in the user's words.
inline CLI::Validator number_between(double least, double most, const std::string& range = "") {
  const std::string allowed = range.empty() ? str_cat(least, " to ", most) : range;
  return CLI::Validator(
      [least, most, allowed](std::string& text) {
        double value = 0;
        if (absl::SimpleAtod(text, &value) && value >= least && value <= most) return std::string();
        return str_cat("\"", text, "\" is no number from ", allowed);
      },
      "");
}

// 0 to 2^64 - 1, in decimal digits.
inline CLI::Validator whole_number() {
  return CLI::Validator(
      [](std::string& text) {
        std::uint64_t value = 0;
        const char* end = text.data() + text.size();
        const auto read = std::from_chars(text.data(), end, value);
        if (read.ec == std::errc() && read.ptr == end) return std::string();
        return str_cat("\"", text, "\" is no whole number from 0 to ", UINT64_MAX);
      },
      "");
}

}  // namespace paceline::cli
