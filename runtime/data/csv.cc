#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include "base/status.h"
#include "runtime/data/formats.h"

namespace paceline::data {

namespace {

constexpr std::size_t kShownBytes = 40;  // of a field, in an error
constexpr int kMaxLabel = 1 << 24;       // floats count exactly up to here

std::string_view trim(std::string_view text) {
  const auto space = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!text.empty() && space(text.front())) text.remove_prefix(1);
  while (!text.empty() && space(text.back())) text.remove_suffix(1);
  return text;
}

std::string shown(std::string_view field) {
  std::string text;
  for (const char c : field.substr(0, kShownBytes)) text += c >= ' ' && c < 127 ? c : '?';
  return str_cat("'", text, field.size() > kShownBytes ? "..." : "", "'");
}

absl::Status field_error(std::int64_t line, std::size_t column, std::string_view what) {
  return absl::InvalidArgumentError(str_cat("line ", line, ", column ", column + 1, ": ", what));
}

std::optional<float> parse_number(std::string_view field) {
  if (!field.empty() && field.front() == '+') field.remove_prefix(1);
  float value = 0;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (error != std::errc() || end != field.data() + field.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

bool looks_like_a_name(std::string_view field) {
  const char c = field.empty() ? '\0' : field.front();
  if (c == '"' || c == '_') return true;
  const bool letter =
      (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || static_cast<unsigned char>(c) >= 0x80;
  double value;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  const bool is_nan_or_inf = error == std::errc() && end == field.data() + field.size();
  return letter && !is_nan_or_inf;
}

class CsvParser {
 public:
  CsvParser(std::int64_t label_column, bool header) : label_column_(label_column), header_(header) {}

  absl::Status add_line(std::string_view line, std::int64_t number) {
    in_first_line_ = columns_ == 0;
    if (in_first_line_) PL_RETURN_IF_ERROR(begin(line, number));
    std::size_t column = 0;
    while (true) {
      const std::size_t comma = line.find(',');
      if (column >= columns_) {
        return absl::InvalidArgumentError(
            str_cat("line ", number, ": more columns than the ", columns_, " of the first line"));
      }
      PL_RETURN_IF_ERROR(add_field(trim(line.substr(0, comma)), number, column));
      ++column;
      if (comma == std::string_view::npos) break;
      line.remove_prefix(comma + 1);
    }
    if (column != columns_) {
      return absl::InvalidArgumentError(
          str_cat("line ", number, ": ", column, " columns, the first line has ", columns_));
    }
    return absl::OkStatus();
  }

  CsvTable take() { return std::move(table_); }

 private:
  absl::Status begin(std::string_view line, std::int64_t number) {
    for (const char c : line) columns_ += c == ',' ? 1 : 0;
    ++columns_;
    const auto columns = static_cast<std::int64_t>(columns_);
    if (columns_ < 2 || columns_ > kMaxCsvColumns) {
      return absl::InvalidArgumentError(
          str_cat("line ", number, ": ", columns_, " columns; allowed: 2 to ", kMaxCsvColumns));
    }
    if (label_column_ >= columns || label_column_ < -columns) {
      return absl::InvalidArgumentError(str_cat("labelColumn ", label_column_, ": line ", number, " has ",
                                                columns_, " columns; allowed: ", -columns, " to ",
                                                columns - 1));
    }
    label_at_ = static_cast<std::size_t>(label_column_ < 0 ? label_column_ + columns : label_column_);
    table_.features = columns - 1;
    return absl::OkStatus();
  }

  // For the commonest mistake: the first line of all is one of names.
  const char* cure_of(std::string_view field) const {
    return in_first_line_ && !header_ && looks_like_a_name(field)
               ? "; if this line names the columns, set spec.training.data.header: true"
               : "";
  }

  absl::Status add_field(std::string_view field, std::int64_t line, std::size_t column) {
    const auto value = parse_number(field);
    if (!value) {
      return field_error(line, column, str_cat(shown(field), " is not a finite number", cure_of(field)));
    }
    if (column != label_at_) {
      table_.values.push_back(*value);
      return absl::OkStatus();
    }
    if (*value < 0 || *value > kMaxLabel || *value != std::floor(*value)) {
      return field_error(line, column,
                         str_cat("the label ", shown(field),
                                 " is not a class; allowed: whole numbers from 0 to ", kMaxLabel));
    }
    table_.labels.push_back(static_cast<std::int32_t>(*value));
    return absl::OkStatus();
  }

  const std::int64_t label_column_;
  const bool header_;  // the names' line has been skipped
  bool in_first_line_ = true;
  std::size_t label_at_ = 0;
  std::size_t columns_ = 0;
  CsvTable table_;
};

}  // namespace

absl::StatusOr<CsvTable> parse_csv(std::string_view text, std::int64_t label_column, bool header) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // a byte order mark, as spreadsheets write it
  CsvParser parser(label_column, header);
  bool skip = header;
  for (std::int64_t number = 1; !text.empty(); ++number) {
    const std::size_t newline = text.find('\n');
    const std::string_view line = trim(text.substr(0, newline));
    text.remove_prefix(newline == std::string_view::npos ? text.size() : newline + 1);
    if (line.empty()) continue;
    if (skip) {
      skip = false;
      continue;
    }
    PL_RETURN_IF_ERROR(parser.add_line(line, number));
  }
  CsvTable table = parser.take();
  if (table.labels.empty()) {
    return absl::InvalidArgumentError(header ? "no lines of numbers after the header"
                                             : "no lines of numbers");
  }
  return table;
}

}  // namespace paceline::data
