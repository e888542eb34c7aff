#pragma once

// Texts to values: numbers, quantities, names. Pure; internal to controller/api.

#include <cstdint>
#include <string>
#include <string_view>

namespace paceline::api {

enum class ScalarError : std::uint8_t { kNone, kWrongForm, kTooLarge };

// Decimal digits with an optional sign; no leading zeros, no fractions, no exponents.
ScalarError parse_integer(std::string_view text, std::int64_t& value);

// A decimal number, finite: 1, -0.5, 1e-3. "nan" and "inf" in any form are kWrongForm, 1e400 and 1e-400
// kTooLarge.
ScalarError parse_number(std::string_view text, double& value);

// An integer, or one with a suffix of Kubernetes' quantities: k, M, G, Ki, Mi, Gi. 1Mi is 1048576.
ScalarError parse_bytes(std::string_view text, std::int64_t& value);

// Processor cores as Kubernetes writes them: 2, 1.5, 500m.
ScalarError parse_cores(std::string_view text, double& value);

// What an unquoted scalar is by YAML's rules: "a number", "true or false", or "" for a text. Kubernetes takes
// only texts for texts.
std::string_view plain_scalar_type(std::string_view text);

// Of a container's variables: PACELINE_*, but for PACELINE_DEVICE and PACELINE_CUDA_GRAPHS, which are the
// job's own.
bool is_set_by_paceline(std::string_view variable);

// What a text field holds.
enum class TextKind : std::uint8_t {
  kAny,            // anything without NUL
  kJobName,        // DNS label of at most 50 bytes that begins with a letter
  kNamespace,      // DNS label, at most 63 bytes
  kContainerName,  // DNS label, at most 63 bytes
  kImage,          // no spaces
  kEnvName,        // letters, digits, '_', '-', '.'; does not begin with a digit; not is_set_by_paceline()
  kCustomName,     // letters, digits, '-', '_', '.'
  kObjectName,     // DNS subdomain, at most 253 bytes
  kManager,        // DNS subdomain '/' path, at most 63 bytes: paceline.dev/controller
  kPath,           // not empty, no control characters, at most 4096 bytes
};

// Empty when `text` is of the kind, otherwise what is allowed.
std::string_view text_rule_broken(TextKind kind, std::string_view text);

// Labels and annotations: an optional DNS prefix and '/', then at most 63 letters, digits, '-', '_', '.'.
// Empty when it is one.
std::string_view label_key_rule_broken(std::string_view key);
std::string_view label_value_rule_broken(std::string_view value);

// "Fashion_Cnn" -> "fashion-cnn": the DNS label that was probably meant; empty if there is none.
std::string as_dns_label(std::string_view text, std::size_t max_bytes);

// For people: texts in quotes and escaped, cut to 64 bytes.
std::string quote(std::string_view text);

// RFC 1123: lower-case letters, digits, '-', not at the ends, at most 63 of them.
bool is_dns_label(std::string_view text, std::size_t max_bytes = 63);

inline bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// A text in double quotes, as YAML and JSON read it.
std::string quoted_text(std::string_view text);

// The shortest text that reads back as the same number: 0.1, 1e-08, 256.
std::string format_number(double value);

}  // namespace paceline::api
