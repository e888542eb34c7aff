#include "controller/api/json_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/text.h"
#include "controller/api/document.h"
#include "controller/api/scalars.h"
#include "controller/api/source_text.h"

namespace paceline::api {

namespace {

bool is_one_of(std::string_view text, std::span<const std::string_view> words) {
  return std::ranges::find(words, text) != words.end();
}

// JSON's own grammar of numbers, with what YAML allows beside it: a sign '+', and ".5" or "5.".
std::string decimal(std::string_view text) {
  std::string result;
  std::size_t i = 0;
  const auto digits = [&] {
    const std::size_t begin = i;
    while (i < text.size() && is_digit(text[i])) ++i;
    return text.substr(begin, i - begin);
  };
  if (i < text.size() && (text[i] == '-' || text[i] == '+')) {
    if (text[i++] == '-') result += '-';
  }
  const std::string_view whole = digits();
  result += whole.empty() ? "0" : std::string(whole);
  if (whole.size() > 1 && whole[0] == '0') return "";
  bool any = !whole.empty();
  if (i < text.size() && text[i] == '.') {
    ++i;
    const std::string_view fraction = digits();
    any = any || !fraction.empty();
    if (!fraction.empty()) result += str_cat(".", fraction);
  }
  if (any && i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    result += 'e';
    ++i;
    if (i < text.size() && (text[i] == '-' || text[i] == '+')) result += text[i++];
    const std::string_view exponent = digits();
    if (exponent.empty()) return "";
    result += exponent;
  }
  return any && i == text.size() ? result : "";
}

// 0644, 0o644, 0x1f, 0b11; empty where it is none of these.
std::string other_base(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  if (text.size() < 2 || text[0] != '0') return "";
  int base = 8;
  std::size_t skip = 1;
  if (text[1] == 'x' || text[1] == 'o' || text[1] == 'b') {
    base = text[1] == 'x' ? 16 : text[1] == 'o' ? 8 : 2;
    skip = 2;
  }
  text.remove_prefix(skip);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return "";
  return std::to_string(negative ? -value : value);
}

std::string quoted(std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      result += {'\\', c};
    } else if (byte < 0x20) {
      result += str_cat("\\u00", std::string{kHex[byte >> 4], kHex[byte & 15]});
    } else {
      result += c;
    }
  }
  return result + "\"";
}

std::string scalar(const Node& node) {
  static constexpr std::array<std::string_view, 11> kTrue = {"true", "True", "TRUE", "yes", "Yes", "YES",
                                                             "on",   "On",   "ON",   "y",   "Y"};
  static constexpr std::array<std::string_view, 11> kFalse = {"false", "False", "FALSE", "no", "No", "NO",
                                                              "off",   "Off",   "OFF",   "n",  "N"};
  static constexpr std::array<std::string_view, 5> kNull = {"", "~", "null", "Null", "NULL"};
  if (node.quoted) return quoted(node.text);
  if (is_one_of(node.text, kTrue)) return "true";
  if (is_one_of(node.text, kFalse)) return "false";
  if (is_one_of(node.text, kNull)) return "null";
  if (std::string number = decimal(node.text); !number.empty()) return number;
  if (std::string number = other_base(node.text); !number.empty()) return number;
  return quoted(node.text);
}

void write(const Document& document, std::size_t at, std::string& out) {
  const Node& node = document.nodes[at];
  const char* separator = "";
  switch (node.kind) {
    case NodeKind::kNull:
      out += "null";
      return;
    case NodeKind::kScalar:
      out += scalar(node);
      return;
    case NodeKind::kList:
      out += '[';
      for (const std::size_t child : node.children) {
        out += separator;
        write(document, child, out);
        separator = ",";
      }
      out += ']';
      return;
    case NodeKind::kMap:
      out += '{';
      for (std::size_t i = 0; i + 1 < node.children.size(); i += 2) {
        out += str_cat(separator, quoted(document.nodes[node.children[i]].text), ":");
        write(document, node.children[i + 1], out);
        separator = ",";
      }
      out += '}';
  }
}

}  // namespace

std::string json_text(std::string_view text) {
  Document document;
  std::vector<Diagnostic> diagnostics;
  PL_CHECK(read_document(skip_byte_order_mark(text), document, diagnostics), "the text was parsed before");
  std::string out;
  write(document, document.root, out);
  return out;
}

}  // namespace paceline::api
