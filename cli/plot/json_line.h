#pragma once

// One line of a file of JSON lines, such as metrics.jsonl. Pure.

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string_view>

namespace paceline::cli {

inline constexpr std::size_t kMostJsonLineBytes = 64 << 10;
inline constexpr int kMostJsonLineDepth = 8;

// It is null where the line is longer or deeper than that, or is no object.
nlohmann::json parse_json_line(std::string_view line, std::size_t most_bytes = kMostJsonLineBytes);

}  // namespace paceline::cli
