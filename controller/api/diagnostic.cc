#include "controller/api/diagnostic.h"

#include <algorithm>

#include "base/sanitize.h"
#include "base/text.h"
#include "controller/api/source_text.h"

namespace paceline::api {

namespace {

constexpr std::size_t kMaxShownLine = 160;  // bytes of a source line; longer ones are shown around the column

// The bytes of `text` from `at` for at most `length`, cut between characters and without what a terminal
// would obey.
std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::string_view character = text.substr(0, std::max<std::size_t>(utf8_bytes(text), 1));
    const bool shown = utf8_bytes(text) > 0 && !is_control(character) && character != "\n";
    out += shown ? character : "?";
    text.remove_prefix(character.size());
  }
  return out;
}

// Blanks as wide as `text`: tabs stay tabs, so that the caret lands under its character.
std::string blanks(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool continuation = (static_cast<unsigned char>(c) & 0xc0) == 0x80;
    if (!continuation) out += c == '\t' ? '\t' : ' ';
  }
  return out;
}

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (true) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    if (end == std::string_view::npos) return lines;
    text.remove_prefix(end + 1);
  }
}

std::string excerpt(std::string_view line, int number, int column) {
  const std::size_t at = std::min(static_cast<std::size_t>(std::max(column, 1) - 1), line.size());
  const std::size_t begin =
      at > kMaxShownLine / 2 && line.size() > kMaxShownLine ? at - kMaxShownLine / 2 : 0;
  const std::string before = printable(line.substr(begin, at - begin));
  const std::string after = printable(line.substr(at, kMaxShownLine - (at - begin)));
  std::string margin = str_cat(number);
  margin.insert(0, margin.size() < 5 ? 5 - margin.size() : 0, ' ');
  return str_cat(margin, " | ", before, after, "\n", std::string(margin.size(), ' '), " | ", blanks(before),
                 "^\n");
}

}  // namespace

std::string message(const Diagnostic& d) {
  std::string text = d.path.empty() ? d.problem : str_cat(d.path, ": ", d.problem);
  if (!d.found.empty()) text += str_cat(": found ", d.found);
  if (!d.suggestion.empty()) {
    text += str_cat("; did you mean \"", d.suggestion, "\"?");
  } else if (!d.allowed.empty()) {
    text += str_cat("; allowed: ", d.allowed);
  }
  return text;
}

bool has_errors(const std::vector<Diagnostic>& diagnostics) {
  return std::any_of(diagnostics.begin(), diagnostics.end(),
                     [](const Diagnostic& d) { return d.severity == Severity::kError; });
}

std::string render_diagnostics(const std::vector<Diagnostic>& diagnostics, std::string_view text) {
  if (diagnostics.empty()) return "";
  const std::vector<std::string_view> lines = split_lines(skip_byte_order_mark(text));
  std::string out;
  int errors = 0, warnings = 0;
  for (const Diagnostic& d : diagnostics) {
    const bool error = d.severity == Severity::kError;
    (error ? errors : warnings) += 1;
    out += str_cat(d.file, ":", d.line, ":", d.column, ": ",
                   error ? "error: " : "warning: ", printable(message(d)), "\n");
    const bool shown =
        d.line >= 1 && static_cast<std::size_t>(d.line) <= lines.size() && !lines[d.line - 1].empty();
    if (shown) out += excerpt(lines[d.line - 1], d.line, d.column);
  }
  const auto count = [](int n, const char* word) { return str_cat(n, " ", word, n == 1 ? "" : "s"); };
  if (errors > 0) out += count(errors, "error");
  if (warnings > 0) out += str_cat(errors > 0 ? ", " : "", count(warnings, "warning"));
  return out + "\n";
}

}  // namespace paceline::api
