#include <algorithm>
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

std::string_view trim(std::string_view text) {
  const auto space = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
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

// Says what is wrong with a field that parse_number() does not take.
std::string_view no_number(std::string_view field) {
  if (!field.empty() && field.front() == '+') field.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  const bool read = error == std::errc();
  if (field.empty() || end != field.data() + field.size() || (read && !std::isfinite(value)))
    return " is not a finite number";
  const bool small = read ? std::abs(value) < 1 : field.find_first_of("eE") + 1 == field.find('-', 1);
  return small ? " is too small for a number of 32 bits" : " is too large for a number of 32 bits";
}

bool looks_like_a_name(std::string_view field) {
  const char c = field.empty() ? '\0' : field.front();
  if (c == '_') return true;
  const bool letter =
      (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || static_cast<unsigned char>(c) >= 0x80;
  double value;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  const bool is_nan_or_inf = error == std::errc() && end == field.data() + field.size();
  return letter && !is_nan_or_inf;
}

// Files of old Macs do: the whole file would be one line.
bool ends_lines_with_cr(std::string_view text) {
  return text.find('\n') == std::string_view::npos && trim(text).find('\r') != std::string_view::npos;
}

struct Separator {
  char character;
  std::string_view name;
};
constexpr Separator kSeparators[] = {{',', "comma"}, {';', "semicolon"}, {'\t', "tab"}};

// Advice for a `text` that is no number and holds another separator; else empty.
std::string other_separator(std::string_view text, char separator) {
  for (const char c : {'\t', ';', ','}) {
    if (c == separator || text.find(c) == std::string_view::npos) continue;
    const auto* const found = std::ranges::find(kSeparators, c, &Separator::character);
    return str_cat("; if a ", found->name,
                   " separates the columns, set spec.training.data.separator: ", found->name);
  }
  return "";
}

// Finds numbers such as "1,000", "1'000" and "3,14".
bool has_digit_groups(std::string_view field) {
  std::string digits(field);
  const bool grouped = std::erase_if(digits, [](char c) { return c == ',' || c == '\''; }) > 0;
  return grouped && parse_number(digits).has_value();
}

// Cuts a text into records by RFC 4180, spaces around fields being left out.
class CsvRecords {
 public:
  CsvRecords(std::string_view text, char separator) : text_(text), separator_(separator) {}

  // Reads the next record; false at the end.
  absl::StatusOr<bool> next() {
    fields_.clear();
    line_ = next_line_;
    if (text_.empty()) return false;
    while (true) {
      if (fields_.size() == kMaxCsvColumns) {
        return absl::InvalidArgumentError(
            str_cat("line ", line_, ": more columns than are allowed, ", kMaxCsvColumns));
      }
      while (text_.starts_with(' ') || (text_.starts_with('\t') && separator_ != '\t')) {
        text_.remove_prefix(1);
      }
      std::string_view quoted;
      const bool quotes = text_.starts_with('"');
      if (quotes) {
        PL_ASSIGN_OR_RETURN(quoted, take_quoted());
      }
      const char ends[] = {separator_, '\n'};
      const std::size_t end = text_.find_first_of(std::string_view(ends, 2));
      const std::string_view rest = trim(text_.substr(0, end));
      if (quotes && !rest.empty()) {
        return field_error(line_, fields_.size(),
                           str_cat("there is ", shown(rest), " behind a quoted field"));
      }
      fields_.push_back(quotes ? trim(quoted) : rest);
      const bool more = end != std::string_view::npos && text_[end] == separator_;
      text_.remove_prefix(end == std::string_view::npos ? text_.size() : end + 1);
      if (more) continue;
      ++next_line_;
      return true;
    }
  }

  // The last record's fields, without their quotes, and the line on which it begins.
  const std::vector<std::string_view>& fields() const { return fields_; }
  std::int64_t line() const { return line_; }

 private:
  // Escaped quotes stay two: no number has any.
  absl::StatusOr<std::string_view> take_quoted() {
    std::size_t end = text_.find('"', 1);
    while (text_.substr(std::min(end, text_.size())).starts_with("\"\"")) end = text_.find('"', end + 2);
    if (end == std::string_view::npos) {
      return field_error(line_, fields_.size(), "a quoted field begins here and does not end");
    }
    const std::string_view field = text_.substr(1, end - 1);
    next_line_ += std::ranges::count(field, '\n');
    text_.remove_prefix(end + 1);
    return field;
  }

  std::string_view text_;  // the rest
  const char separator_;
  std::vector<std::string_view> fields_;
  std::int64_t line_ = 0, next_line_ = 1;
};

class CsvParser {
 public:
  explicit CsvParser(const CsvOptions& options) : options_(options) {}

  absl::Status add(const CsvRecords& record) {
    const std::vector<std::string_view>& fields = record.fields();
    const std::int64_t line = record.line();
    in_first_line_ = columns_ == 0;
    if (in_first_line_) PL_RETURN_IF_ERROR(begin(fields, line));
    if (fields.size() != columns_) {
      return absl::InvalidArgumentError(
          str_cat("line ", line, ": ", fields.size(), " columns, the first line has ", columns_,
                  fields.size() == columns_ + 1 && fields.back().empty() ? kTrailing : ""));
    }
    for (std::size_t column = 0; column < columns_; ++column)
      PL_RETURN_IF_ERROR(add_field(fields[column], line, column));
    return absl::OkStatus();
  }

  CsvTable take() { return std::move(table_); }

 private:
  static constexpr const char* kOtherLabels =
      "; number the classes, or say by spec.training.data.labelColumn which column has them";
  static constexpr const char* kTrailing = "; the line ends with a separator: remove it";

  absl::Status begin(const std::vector<std::string_view>& fields, std::int64_t line) {
    columns_ = fields.size();
    const auto columns = static_cast<std::int64_t>(columns_);
    if (columns_ < 2) {
      return absl::InvalidArgumentError(str_cat("line ", line, ": ", columns_, " columns; allowed: 2 to ",
                                                kMaxCsvColumns,
                                                other_separator(fields.front(), options_.separator)));
    }
    if (options_.label_column >= columns || options_.label_column < -columns) {
      return absl::InvalidArgumentError(str_cat("labelColumn ", options_.label_column, ": line ", line,
                                                " has ", columns_, " columns; allowed: ", -columns, " to ",
                                                columns - 1));
    }
    label_at_ = static_cast<std::size_t>(options_.label_column + (options_.label_column < 0 ? columns : 0));
    table_.features = columns - 1;
    return absl::OkStatus();
  }

  static std::string no_class(std::string_view field) {
    return str_cat("the label ", shown(field), " is not a class; allowed: whole numbers from 0 to ",
                   kMaxLabel);
  }

  // Advice on what helps, as far as the field shows it; else empty.
  std::string cure_of(std::string_view field, std::size_t column) const {
    if (column == 0 && field.starts_with('#')) {
      return "; CSV has no comments: remove the lines that begin with #";
    }
    if (field.empty() && column + 1 == columns_) return kTrailing;
    if (has_digit_groups(field)) {
      return "; a number has no thousands separators, and a point before its fraction";
    }
    const std::string separator = other_separator(field, options_.separator);
    if (!separator.empty() || !in_first_line_ || options_.header || !looks_like_a_name(field))
      return separator;
    return "; if this line names the columns, set spec.training.data.header: true";
  }

  absl::Status add_field(std::string_view field, std::int64_t line, std::size_t column) {
    const auto value = parse_number(field);
    if (!value) {
      if (column == label_at_ && looks_like_a_name(field))
        return field_error(line, column, str_cat(no_class(field), kOtherLabels, cure_of(field, column)));
      return field_error(line, column, str_cat(shown(field), no_number(field), cure_of(field, column)));
    }
    if (column != label_at_) {
      table_.values.push_back(*value);
      return absl::OkStatus();
    }
    if (*value < 0 || *value > kMaxLabel || *value != std::floor(*value)) {
      return field_error(line, column, no_class(field));
    }
    table_.labels.push_back(static_cast<std::int32_t>(*value));
    return absl::OkStatus();
  }

  const CsvOptions options_;
  bool in_first_line_ = true;  // of numbers
  std::size_t label_at_ = 0;
  std::size_t columns_ = 0;
  CsvTable table_;
};

}  // namespace

absl::StatusOr<CsvTable> parse_csv(std::string_view text, const CsvOptions& options) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // a byte order mark, as spreadsheets write it
  // UTF-16 shows by its byte order mark, or by the zero byte of a digit.
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff") ||
      text.substr(0, 2).find('\0') != std::string_view::npos) {
    return absl::InvalidArgumentError("the text is UTF-16; allowed: UTF-8. Save it as that (iconv -t UTF-8)");
  }
  if (ends_lines_with_cr(text)) {
    return absl::InvalidArgumentError(
        "its lines end with CR alone; allowed: LF, or CR LF. Mend it, as with tr '\\r' '\\n'");
  }
  CsvParser parser(options);
  CsvRecords records(text, options.separator);
  bool skip = options.header;
  while (true) {
    PL_ASSIGN_OR_RETURN(const bool found, records.next());
    if (!found) break;
    if (records.fields().size() == 1 && records.fields().front().empty()) continue;
    if (!skip) PL_RETURN_IF_ERROR(parser.add(records));
    skip = false;
  }
  CsvTable table = parser.take();
  if (table.labels.empty()) {
    return absl::InvalidArgumentError(options.header ? "no lines of numbers after the header"
                                                     : "no lines of numbers");
  }
  return table;
}

}  // namespace paceline::data
