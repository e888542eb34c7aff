#include "controller/jobs/yaml.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/text.h"

namespace paceline::jobs {

namespace {

using OrderedJson = nlohmann::ordered_json;

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Begins with a letter, or '/', holds nothing that means something to YAML, and is no word that does.
bool is_plain(const std::string& text) {
  if (text.empty() || text.back() == ' ' || !(is_letter(text[0]) || text[0] == '/')) return false;
  const auto may = [](char c) {
    return is_letter(c) || (c >= '0' && c <= '9') ||
           std::string_view(" _./@=+,()-").find(c) != std::string_view::npos;
  };
  // A colon only within a word: "a: b" is a map.
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ':' ? i + 1 == text.size() || text[i + 1] == ' ' : !may(text[i])) return false;
  }
  std::string lower = text;
  std::ranges::transform(lower, lower.begin(),
                         [](char c) { return is_letter(c) ? static_cast<char>(c | 0x20) : c; });
  for (const char* word : {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}) {
    if (lower == word) return false;
  }
  return true;
}

std::string scalar(const OrderedJson& json) {
  if (json.is_string() && is_plain(json.get_ref<const std::string&>())) return json.get<std::string>();
  return json.dump(-1, ' ', false,
                   OrderedJson::error_handler_t::replace);  // JSON's texts are YAML's double-quoted ones
}

bool is_block(const OrderedJson& json) {
  return (json.is_object() || json.is_array()) && !json.empty();
}

void write(const OrderedJson& json, std::size_t indent, bool first_in_line, std::string& out) {
  const auto begin_line = [&] {
    if (!first_in_line) out.append(indent, ' ');
    first_in_line = false;
  };
  if (json.is_object()) {
    for (const auto& [key, value] : json.items()) {
      begin_line();
      out += scalar(key) + ":";
      if (!is_block(value)) {
        out += str_cat(" ", scalar(value), "\n");
      } else {
        out += "\n";
        write(value, value.is_array() ? indent : indent + 2, false, out);  // lists as kubectl prints them
      }
    }
    return;
  }
  for (const OrderedJson& item : json) {
    begin_line();
    out += "- ";
    if (is_block(item)) {
      write(item, indent + 2, true, out);
    } else {
      out += scalar(item) + "\n";
    }
  }
}

}  // namespace

std::string yaml_of(std::string_view json) {
  const OrderedJson value = OrderedJson::parse(json, nullptr, false);
  PL_CHECK(!value.is_discarded(), "yaml_of() takes JSON");
  if (!is_block(value)) return scalar(value) + "\n";
  std::string out;
  write(value, 0, false, out);
  return out;
}

}  // namespace paceline::jobs
