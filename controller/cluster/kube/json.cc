#include "controller/cluster/kube/json.h"

#include <optional>

#include "base/status.h"

namespace paceline::kube {

namespace {

constexpr std::size_t kShownBytes = 80;  // of garbage

// Why the text would take too much to read; nothing where it would not. One pass, no memory.
std::optional<std::string> too_much(std::string_view text) {
  int depth = 0;
  std::size_t values = 1;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"') quoted = false;
      continue;
    }
    if (c == '"') quoted = true;
    if (c == '{' || c == '[') {
      if (++depth > kMaxJsonDepth) return str_cat("nested deeper than ", kMaxJsonDepth, " at byte ", i);
      ++values;
    }
    if (c == '}' || c == ']') --depth;
    if (c == ',' && ++values > kMaxJsonValues) return str_cat("more than ", kMaxJsonValues, " values");
  }
  return std::nullopt;
}

// The length of the character that begins at text[i], as far as it may be shown; 0: it may not.
std::size_t shown_length(std::string_view text, std::size_t i) {
  const auto byte = [&](std::size_t k) {
    return i + k < text.size() ? static_cast<unsigned char>(text[i + k]) : 0u;
  };
  const auto follows = [&](std::size_t k) { return (byte(k) & 0xc0u) == 0x80u; };
  const unsigned first = byte(0);
  if (first < 0x80) return first >= 0x20 && first != 0x7f ? 1 : 0;
  if (first < 0xc2 || first > 0xf4 || !follows(1)) return 0;
  if (first == 0xc2 && byte(1) < 0xa0) return 0;  // C1 controls
  if (first < 0xe0) return 2;
  if (!follows(2) || (first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) > 0x9f)) return 0;
  if (first == 0xe2 && byte(1) == 0x80 && byte(2) >= 0xa8 && byte(2) <= 0xae) return 0;  // lines, directions
  if (first < 0xf0) return 3;
  if (!follows(3) || (first == 0xf0 && byte(1) < 0x90) || (first == 0xf4 && byte(1) > 0x8f)) return 0;
  return 4;
}

}  // namespace

absl::StatusOr<Json> parse_json(std::string_view text) {
  if (const auto why = too_much(text)) return absl::DataLossError(str_cat("JSON that is ", *why));
  // It throws only for lack of memory, which the checks above keep away.
  Json json = Json::parse(text.begin(), text.end(), nullptr, false);
  if (!json.is_discarded()) return json;
  if (text.empty()) return absl::DataLossError("an empty answer instead of JSON");
  return absl::DataLossError(
      str_cat("no JSON, but ", text.size(), " bytes that begin with \"", harmless(text, kShownBytes), "\""));
}

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string harmless(std::string_view text, std::size_t limit) {
  std::string result;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = shown_length(text, i);
    const std::size_t added = length == 0 ? 1 : length;
    if (result.size() + added > limit) return result + "...";
    if (length > 0) {
      result.append(text.substr(i, length));
    } else {
      result += text[i] == '\n' || text[i] == '\r' || text[i] == '\t' ? ' ' : '?';
    }
    i += added;
  }
  return result;
}

const Json& at(const Json& json, std::initializer_list<std::string_view> keys) {
  static const Json kNull;
  const Json* here = &json;
  for (const std::string_view key : keys) {
    const auto found = here->find(key);
    if (found == here->end()) return kNull;
    here = &*found;
  }
  return *here;
}

const std::string& text_at(const Json& json, std::initializer_list<std::string_view> keys) {
  static const std::string kEmpty;
  const Json& value = at(json, keys);
  return value.is_string() ? value.get_ref<const std::string&>() : kEmpty;
}

std::int64_t integer_at(const Json& json, std::initializer_list<std::string_view> keys) {
  const Json& value = at(json, keys);
  return value.is_number_integer() ? value.get<std::int64_t>() : 0;
}

bool flag_at(const Json& json, std::initializer_list<std::string_view> keys) {
  const Json& value = at(json, keys);
  return value.is_boolean() && value.get<bool>();
}

std::optional<double> number_at(const Json& json, std::initializer_list<std::string_view> keys) {
  const Json& value = at(json, keys);
  return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
}

const Json::array_t& list_at(const Json& json, std::initializer_list<std::string_view> keys) {
  static const Json::array_t kEmpty;
  const Json& value = at(json, keys);
  return value.is_array() ? value.get_ref<const Json::array_t&>() : kEmpty;
}

}  // namespace paceline::kube
