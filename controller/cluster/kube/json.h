#pragma once

// JSON from a server that may send anything: bounded before memory is taken, errors instead of exceptions,
// and reads that never fail: what is missing or of another type is null, empty or zero. Pure.

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace paceline::kube {

using Json = nlohmann::json;

inline constexpr int kMaxJsonDepth = 100;               // of lists and maps
inline constexpr std::size_t kMaxJsonValues = 4 << 20;  // in one text; each takes some 40 bytes

// One JSON value and nothing else. DATA_LOSS with the first bytes of what came instead.
absl::StatusOr<Json> parse_json(std::string_view text);

// What is no UTF-8 is replaced.
std::string dump(const Json& json);

// Printable in one line: control characters and what is no UTF-8 become '?', line ends become blanks; cut
// after `limit` bytes, with "..." to show it.
std::string sanitize_line(std::string_view text, std::size_t limit);

// What stands at keys[0].keys[1]...; null where it is missing.
const Json& at(const Json& json, std::initializer_list<std::string_view> keys);
// Empty, 0, false where there is no text, integer, boolean.
const std::string& text_at(const Json& json, std::initializer_list<std::string_view> keys);
std::int64_t integer_at(const Json& json, std::initializer_list<std::string_view> keys);
bool flag_at(const Json& json, std::initializer_list<std::string_view> keys);
std::optional<double> number_at(const Json& json, std::initializer_list<std::string_view> keys);
// An empty list where there is none.
const Json::array_t& list_at(const Json& json, std::initializer_list<std::string_view> keys);

}  // namespace paceline::kube
