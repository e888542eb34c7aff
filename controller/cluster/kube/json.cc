#include "controller/cluster/kube/json.h"

#include <algorithm>
#include <optional>

#include "base/sanitize.h"
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

}  // namespace

absl::StatusOr<Json> parse_json(std::string_view text) {
  if (const auto why = too_much(text)) return absl::DataLossError(str_cat("JSON that is ", *why));
  // It throws only for lack of memory, which the checks above keep away.
  Json json = Json::parse(text.begin(), text.end(), nullptr, false);
  if (!json.is_discarded()) return json;
  if (text.empty()) return absl::DataLossError("an empty answer instead of JSON");
  return absl::DataLossError(str_cat("no JSON, but ", text.size(), " bytes that begin with \"",
                                     sanitize_line(text, kShownBytes), "\""));
}

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string sanitize_line(std::string_view text, std::size_t limit) {
  std::string result;
  while (!text.empty()) {
    const std::string_view character = text.substr(0, std::max<std::size_t>(utf8_bytes(text), 1));
    const bool space = character == "\n" || character == "\r" || character == "\t";
    const bool shown = !space && utf8_bytes(text) > 0 && !is_control(character);
    if (result.size() + (shown ? character.size() : 1) > limit) return result + "...";
    result.append(shown ? character : space ? " " : "?");
    text.remove_prefix(character.size());
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
