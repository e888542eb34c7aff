#include "controller/api/scalars.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "base/sanitize.h"
#include "base/text.h"
#include "controller/api/source_text.h"

namespace paceline::api {

namespace {

constexpr std::size_t kMaxShown = 64;

bool is_lower(char c) {
  return c >= 'a' && c <= 'z';
}
bool is_letter(char c) {
  return is_lower(c) || (c >= 'A' && c <= 'Z');
}
bool is_alphanumeric(char c) {
  return is_letter(c) || is_digit(c);
}

bool is_dns_subdomain(std::string_view text) {
  const auto good = [](char c) { return is_lower(c) || is_digit(c) || c == '-' || c == '.'; };
  return !text.empty() && text.size() <= 253 && is_alphanumeric(text.front()) &&
         is_alphanumeric(text.back()) && std::all_of(text.begin(), text.end(), good);
}

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

// Letters, digits, '-', '_', '.', beginning and ending with a letter or a digit; at most 63 bytes.
bool is_label_name(std::string_view text) {
  if (text.empty() || text.size() > 63 || !is_alphanumeric(text.front()) || !is_alphanumeric(text.back()))
    return false;
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return is_alphanumeric(c) || c == '-' || c == '_' || c == '.'; });
}

// digits [. digits] [e [sign] digits], or . digits; a sign before it.
bool has_number_form(std::string_view text) {
  std::size_t i = 0;
  const auto digits = [&] {
    const std::size_t start = i;
    while (i < text.size() && is_digit(text[i])) ++i;
    return i - start;
  };
  if (i < text.size() && (text[i] == '-' || text[i] == '+')) ++i;
  std::size_t count = digits();
  if (i < text.size() && text[i] == '.') {
    ++i;
    count += digits();
  }
  if (count == 0) return false;
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    ++i;
    if (i < text.size() && (text[i] == '-' || text[i] == '+')) ++i;
    if (digits() == 0) return false;
  }
  return i == text.size();
}

}  // namespace

bool is_dns_label(std::string_view text, std::size_t max_bytes) {
  if (text.empty() || text.size() > max_bytes || text.front() == '-' || text.back() == '-') return false;
  return std::all_of(text.begin(), text.end(), [](char c) { return is_lower(c) || is_digit(c) || c == '-'; });
}

ScalarError parse_integer(std::string_view text, std::int64_t& value) {
  std::string_view digits = text;
  const bool negative = digits.starts_with('-');
  if (negative || digits.starts_with('+')) digits.remove_prefix(1);
  if (digits.empty() || !std::all_of(digits.begin(), digits.end(), is_digit)) return ScalarError::kWrongForm;
  if (digits.size() > 1 && digits.front() == '0') return ScalarError::kWrongForm;  // octal to some readers
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() ? ScalarError::kNone : ScalarError::kTooLarge;
}

ScalarError parse_number(std::string_view text, double& value) {
  if (!has_number_form(text)) return ScalarError::kWrongForm;
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || !std::isfinite(value)) return ScalarError::kTooLarge;
  return end == text.data() + text.size() ? ScalarError::kNone : ScalarError::kWrongForm;
}

ScalarError parse_bytes(std::string_view text, std::int64_t& value) {
  static constexpr std::pair<std::string_view, std::int64_t> kSuffixes[] = {
      {"Ki", 1LL << 10}, {"Mi", 1LL << 20}, {"Gi", 1LL << 30},
      {"k", 1'000},      {"M", 1'000'000},  {"G", 1'000'000'000}};
  std::int64_t factor = 1;
  for (const auto& [suffix, times] : kSuffixes) {
    if (!text.ends_with(suffix)) continue;
    text.remove_suffix(suffix.size());
    factor = times;
    break;
  }
  const ScalarError error = parse_integer(text, value);
  if (error != ScalarError::kNone) return error;
  return __builtin_mul_overflow(value, factor, &value) ? ScalarError::kTooLarge : ScalarError::kNone;
}

ScalarError parse_cores(std::string_view text, double& value) {
  const bool milli = text.ends_with('m');
  if (milli) text.remove_suffix(1);
  const ScalarError error = parse_number(text, value);
  if (milli) value /= 1000;
  return error;
}

std::string_view plain_scalar_type(std::string_view text) {
  double number = 0;
  if (parse_number(text, number) != ScalarError::kWrongForm) return "a number";
  static constexpr std::string_view kBooleans[] = {"true", "True", "TRUE", "false", "False", "FALSE"};
  for (const std::string_view boolean : kBooleans) {
    if (text == boolean) return "true or false";
  }
  return "";
}

bool is_set_by_paceline(std::string_view variable) {
  return variable.starts_with("PACELINE_") && variable != "PACELINE_DEVICE" &&
         variable != "PACELINE_CUDA_GRAPHS";
}

std::string_view text_rule_broken(TextKind kind, std::string_view text) {
  const bool has_control = std::any_of(text.begin(), text.end(), is_control);
  switch (kind) {
    case TextKind::kAny:
      return text.find('\0') == std::string_view::npos ? "" : "text without NUL characters";
    case TextKind::kJobName:
      if (is_dns_label(text, 50) && is_lower(text.front())) return "";
      return "at most 50 small letters, digits and '-', beginning with a letter and not ending with '-'";
    case TextKind::kNamespace:
    case TextKind::kContainerName:
      return is_dns_label(text, 63) ? "" : "at most 63 small letters, digits and '-', no '-' at the ends";
    case TextKind::kImage:
      if (!text.empty() && !has_control && text.find(' ') == std::string_view::npos) return "";
      return "an image's name, without spaces";
    case TextKind::kEnvName: {
      const auto good = [](char c) { return is_alphanumeric(c) || c == '_' || c == '-' || c == '.'; };
      const bool form = !text.empty() && text.size() <= 1024 && !is_digit(text.front()) &&
                        std::all_of(text.begin(), text.end(), good);
      if (!form) return "letters, digits, '_', '-' and '.', not beginning with a digit";
      return is_set_by_paceline(text)
                 ? "names that do not begin with PACELINE_, which Paceline sets itself, and "
                   "PACELINE_DEVICE and PACELINE_CUDA_GRAPHS"
                 : "";
    }
    case TextKind::kCustomName:
      return is_label_name(text) ? "" : "at most 63 letters, digits, '-', '_' and '.'";
    case TextKind::kObjectName:
      return is_dns_subdomain(text)
                 ? ""
                 : "at most 253 small letters, digits, '-' and '.', no '-' or '.' at the ends";
    case TextKind::kManager: {
      const std::size_t slash = text.find('/');
      const bool good = slash != std::string_view::npos && text.size() <= 63 &&
                        is_dns_subdomain(text.substr(0, slash)) && is_label_name(text.substr(slash + 1));
      return good ? "" : "a DNS name, '/' and a name, at most 63 bytes: paceline.dev/controller";
    }
    case TextKind::kPath:
      return !text.empty() && !has_control && text.size() <= 4096
                 ? ""
                 : "a path of at most 4096 bytes, without control characters";
  }
  return "";
}

std::string_view label_key_rule_broken(std::string_view key) {
  const std::size_t slash = key.find('/');
  const std::string_view prefix = slash == std::string_view::npos ? "" : key.substr(0, slash);
  const std::string_view name = slash == std::string_view::npos ? key : key.substr(slash + 1);
  const bool prefix_good =
      slash == std::string_view::npos ||
      (!prefix.empty() && prefix.size() <= 253 && std::all_of(prefix.begin(), prefix.end(), [](char c) {
        return is_lower(c) || is_digit(c) || c == '-' || c == '.';
      }));
  if (prefix_good && is_label_name(name)) return "";
  return "an optional DNS name and '/', then at most 63 letters, digits, '-', '_' and '.'";
}

std::string_view label_value_rule_broken(std::string_view value) {
  return value.empty() || is_label_name(value) ? "" : "at most 63 letters, digits, '-', '_' and '.'";
}

std::string as_dns_label(std::string_view text, std::size_t max_bytes) {
  std::string label;
  for (const char c : text) {
    const char low = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    const bool keep = is_lower(low) || (is_digit(low) && !label.empty());
    if (keep) label += low;
    if (!keep && !label.empty() && label.back() != '-') label += '-';
    if (label.size() == max_bytes) break;
  }
  while (!label.empty() && label.back() == '-') label.pop_back();
  return label;
}

std::string quote(std::string_view text) {
  std::string out = "\"";
  std::size_t i = 0;
  while (i < text.size() && out.size() < kMaxShown) {
    const std::string_view character = text.substr(i, std::max<std::size_t>(utf8_bytes(text.substr(i)), 1));
    if (text[i] == '"' || text[i] == '\\') out += '\\';
    if (text[i] == '\n') {
      out += "\\n";
    } else if (text[i] == '\t') {
      out += "\\x09";
    } else {
      out += sanitize(character);
    }
    i += character.size();
  }
  if (i < text.size()) out += "...";
  return out + "\"";
}

std::string quoted_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else if (is_control(c)) {
      out += str_cat("\\x", absl::Hex(static_cast<unsigned char>(c), absl::kZeroPad2));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string format_number(double value) {
  char buffer[32];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value);
  return std::string(buffer, end);
}

}  // namespace paceline::api
