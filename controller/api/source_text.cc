#include "controller/api/source_text.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_format.h"
#include "base/sanitize.h"
#include "base/text.h"
#include "controller/api/parse.h"

namespace paceline::api {

namespace {

Diagnostic problem_at(int line, std::size_t column, std::string problem, std::string found,
                      std::string allowed) {
  Diagnostic d;
  d.line = line;
  d.column = static_cast<int>(column);
  d.problem = std::move(problem);
  d.found = std::move(found);
  d.allowed = std::move(allowed);
  return d;
}

}  // namespace

bool is_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = utf8_bytes(text.substr(i));
    if (length == 0) return false;
    i += length;
  }
  return true;
}

std::string_view skip_byte_order_mark(std::string_view text) {
  return text.starts_with("\xef\xbb\xbf") ? text.substr(3) : text;
}

std::string beyond_ascii(std::string_view text, int line, int column, std::string_view among) {
  for (int i = 1; i < line; ++i) text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  text = text.substr(0, text.find_first_of("\n#"));
  for (std::size_t i = static_cast<std::size_t>(column) - 1; i < text.size();) {
    const std::string_view character = text.substr(i, std::max<std::size_t>(utf8_bytes(text.substr(i)), 1));
    if (character.size() > 1 && among.find(character) != std::string_view::npos) {
      // The first byte holds 7 - size bits, each other one 6.
      std::uint32_t code = static_cast<unsigned char>(character[0]) & (0x7fU >> character.size());
      for (const char c : character.substr(1)) code = code << 6 | (static_cast<unsigned char>(c) & 0x3fU);
      return str_cat("U+", absl::StrFormat("%04X", code), " at ", line, ":", i + 1);
    }
    i += character.size();
  }
  return "";
}

std::optional<Diagnostic> check_source_text(std::string_view text) {
  if (text.size() > kMaxFileBytes) {
    return problem_at(1, 1, "the file is too large", str_cat(text.size(), " bytes"),
                      str_cat("at most ", kMaxFileBytes, " bytes (1 MiB)"));
  }
  int line = 1;
  std::size_t line_start = 0, flow_marks = 0;
  for (std::size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const std::size_t column = i - line_start + 1;
    if (column > kMaxLineBytes) {
      return problem_at(line, 1, "the line is too long", "",
                        str_cat("at most ", kMaxLineBytes, " bytes in a line"));
    }
    const std::size_t length = utf8_bytes(text.substr(i));
    if (length == 0)
      return problem_at(line, column, "not UTF-8 text", str_cat("byte 0x", absl::Hex(byte, absl::kZeroPad2)),
                        "UTF-8");
    const bool c1 = byte == 0xc2 && static_cast<unsigned char>(text[i + 1]) < 0xa0;
    if ((byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r') || byte == 0x7f || c1) {
      const auto shown = static_cast<unsigned char>(c1 ? text[i + 1] : text[i]);
      return problem_at(line, column, byte == 0 ? "a NUL byte" : "a control character",
                        str_cat("0x", absl::Hex(shown, absl::kZeroPad2)), "printable text");
    }
    flow_marks += byte == '[' || byte == '{' || byte == ',' ? 1 : 0;
    if (flow_marks > kMaxFlowMarks) {
      return problem_at(line, column, "too many '[', '{' and ','", "",
                        str_cat("at most ", kMaxFlowMarks, " in a file"));
    }
    if (byte == '\n') {
      ++line;
      line_start = i + 1;
    }
    i += length;
  }
  return std::nullopt;
}

}  // namespace paceline::api
