#include "controller/api/print.h"

#include <vector>

#include "base/text.h"
#include "controller/api/fields.h"
#include "controller/api/source_text.h"
#include "controller/api/value_visitor.h"

namespace paceline::api {

namespace {

// A text as a YAML scalar: bare where no reader could take it for anything else, in double quotes otherwise.
std::string yaml_scalar(std::string_view text) {
  bool bare = !text.empty() && plain_scalar_type(text).empty();
  for (const char c : text) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '/';
    bare = bare && (letter || (c >= '0' && c <= '9') || c == '-' || c == '.');
  }
  // Words that YAML 1.1 reads as something else, and what only looks like a number there, begin with these.
  const bool safe_start =
      bare && (text.front() == '/' || (text.size() > 5 && text.front() >= 'a' && text.front() <= 'z'));
  return safe_start ? std::string(text) : quoted_text(text);
}

constexpr std::size_t kIndent = 2;
constexpr std::size_t kMaxLineOfItems = 80;  // bytes

class Printer final : public ValueVisitor {
 public:
  explicit Printer(bool trains) : trains_(trains) {}
  std::string take() { return std::move(out_); }

  // A map's own line is written with its first field, so that empty maps leave no trace.
  bool whole(const Field& field, std::string& value) override {
    if (!value.empty()) line(field, value);
    return !value.empty();
  }
  bool begin(const Field& field, bool present) override {
    if (!present || !field.when.applies || (!trains_ && is_of_training(field))) return false;
    open_.push_back({.header = str_cat(field.name, ":"), .indent = inner_indent()});
    return true;
  }
  void end() override { open_.pop_back(); }
  std::size_t begin_list(const Field& field, std::size_t size, CountRange) override {
    if (begin(field, true)) return size;
    open_.emplace_back();  // end() follows, and nothing before it
    return 0;
  }
  bool begin_item(std::size_t) override {
    open_.push_back({.header = "-", .indent = inner_indent()});
    return true;
  }

  void constant(const Field& field, std::string_view value) override { line(field, value); }
  void text(const Field& field, TextKind, std::string& value) override {
    if (!value.empty()) line(field, yaml_scalar(value));
  }
  void cores(const Field& field, bool /*zero*/, double& value) override {
    line(field, str_cat("\"", format_number(value), "\""));
  }

 protected:
  void take(const Field& field, const std::string& value) override { line(field, value); }
  void take_list(const Field& field, const std::vector<std::string>& values) override {
    items(field, values, "- ", "[]");
  }
  void take_map(const Field& field, const std::vector<std::string>& pairs) override {
    items(field, pairs, "", "{}");
  }
  std::string quoted(std::string_view text) const override { return yaml_scalar(text); }

 private:
  struct Open {
    std::string header;
    std::size_t indent = 0;
    bool written = false;
  };

  // The rules refuse these where there is no training (check_without_training() in rules.cc).
  bool is_of_training(const Field& field) const {
    const std::string_view name = field.name;
    return open_.size() == 1 && (name == "strategy" || name == "checkpoint");
  }
  void line(const Field& field, std::string_view value) {
    if (!field.when.applies || field.idle) return;
    bool after_dash = false;
    for (Open& open : open_) {
      if (open.written) continue;
      if (!after_dash) out_ += std::string(open.indent, ' ');
      out_ += open.header;
      after_dash = open.header == "-";
      out_ += after_dash ? " " : "\n";
      open.written = true;
    }
    if (!after_dash) out_ += std::string(inner_indent(), ' ');
    out_ += str_cat(field.name, value.empty() ? ":" : ": ", value, "\n");
  }
  // Short lists and maps on the field's own line, long ones with a line for each item.
  void items(const Field& field, const std::vector<std::string>& items, const char* dash,
             const char* brackets) {
    std::string text;
    for (const std::string& item : items) text += str_cat(text.empty() ? "" : ", ", item);
    if (items.empty() || !field.when.applies) return;
    if (text.size() <= kMaxLineOfItems) {
      line(field, str_cat(std::string(1, brackets[0]), text, std::string(1, brackets[1])));
      return;
    }
    line(field, "");
    for (const std::string& item : items)
      out_ += str_cat(std::string(inner_indent() + kIndent, ' '), dash, item, "\n");
  }
  std::size_t inner_indent() const { return open_.empty() ? 0 : open_.back().indent + kIndent; }

  const bool trains_;
  std::string out_;
  std::vector<Open> open_;
};

}  // namespace

std::string print_yaml(const TrainingJob& job) {
  TrainingJob copy = job;
  Printer printer(job.spec.training.has_value());
  visit(printer, copy);
  return printer.take();
}

}  // namespace paceline::api
