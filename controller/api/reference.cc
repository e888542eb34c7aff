#include "controller/api/reference.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/text.h"
#include "controller/api/fields.h"
#include "controller/api/suggest.h"

namespace paceline::api {

namespace {

struct Row {
  std::string path, name, type, standard, meaning;
};

struct Section {
  std::string path;
  std::vector<Row> rows = {};
};

// Collects one row for every field, by map. Maps appear in the order of the table.
class Documenter final : public FieldVisitor {
 public:
  Documenter() { open_.push_back(add_section("")); }
  const std::vector<Section>& sections() const { return sections_; }

  bool begin(const Field& field, bool) override {
    row(field, *field.same_as == '\0' ? "map" : str_cat("map, fields as of `", field.same_as, "`"), "");
    if (*field.same_as != '\0') return false;
    open_.push_back(add_section(path_of(field.name)));
    return true;
  }
  void end() override { open_.pop_back(); }
  std::size_t begin_list(const Field& field, std::size_t, CountRange count) override {
    row(field, str_cat("list of maps, ", describe(count)), "");
    open_.push_back(add_section(str_cat(path_of(field.name), "[]")));
    return 1;
  }
  bool begin_item(std::size_t) override {
    open_.push_back(open_.back());
    return true;
  }

  void constant(const Field& field, std::string_view value) override {
    row(field, str_cat("`", value, "`"), "");
  }
  void text(const Field& field, TextKind, std::string& value) override { row(field, "text", value); }
  void flag(const Field& field, bool& value) override {
    row(field, "true or false", value ? "true" : "false");
  }
  void bytes(const Field& field, IntegerRange range, std::int64_t& value) override {
    row(field, str_cat("bytes, ", describe(range), "; `512Ki`, `1Mi`"), str_cat(value));
  }
  void cores(const Field& field, bool, double&) override { row(field, "cores", ""); }
  void integers(const Field& field, IntegerRange range, CountRange count,
                std::vector<std::int64_t>&) override {
    row(field, str_cat("list of whole numbers, each ", describe(range), "; ", describe(count)),
        count.min == 0 ? "[]" : "");
  }
  void texts(const Field& field, TextKind, CountRange count, std::vector<std::string>&) override {
    row(field, count.lone_item ? "text or list of texts" : "list of texts", "");
  }
  void labels(const Field& field, bool, std::map<std::string, std::string>&) override {
    row(field, "map of texts", "");
  }
  void parameters(const Field& field, std::map<std::string, std::string>&) override {
    row(field, "map of scalars", "");
  }

 protected:
  std::optional<std::int64_t> on_integer(const Field& field, IntegerRange range,
                                         std::optional<std::int64_t> value) override {
    row(field, str_cat("whole number, ", describe(range)), value ? str_cat(*value) : "");
    return value;
  }
  std::optional<double> on_number(const Field& field, NumberRange range,
                                  std::optional<double> value) override {
    row(field, str_cat("number, ", describe(range)), value ? format_number(*value) : "");
    return value;
  }
  std::optional<std::size_t> on_choice(const Field& field, std::span<const Choice> choices,
                                       std::optional<std::size_t> value) override {
    row(field, describe(choices), value ? choices[*value].name : "");
    return value;
  }

 private:
  std::size_t add_section(std::string path) {
    sections_.push_back({std::move(path)});
    return sections_.size() - 1;
  }
  std::string path_of(std::string_view name) const {
    const std::string& parent = sections_[open_.back()].path;
    return parent.empty() ? std::string(name) : str_cat(parent, ".", name);
  }
  void row(const Field& field, std::string type, std::string standard) {
    std::string meaning = field.meaning;
    if (*field.when.only_with != '\0') meaning += str_cat(" (only with ", field.when.only_with, ")");
    if (field.required) standard = "required";
    sections_[open_.back()].rows.push_back(
        {path_of(field.name), field.name, std::move(type), std::move(standard), std::move(meaning)});
  }

  std::vector<Section> sections_;
  std::vector<std::size_t> open_;  // sections
};

Documenter documented() {
  TrainingJob job;
  Documenter documenter;
  visit(documenter, job);
  return documenter;
}

}  // namespace

std::string field_reference() {
  std::string text;
  const Documenter documenter = documented();
  for (const Section& section : documenter.sections()) {
    if (section.rows.empty()) continue;
    text += section.path.empty() ? "### The outermost map\n\n" : str_cat("### `", section.path, "`\n\n");
    text += "| field | type | default | meaning |\n| --- | --- | --- | --- |\n";
    for (const Row& row : section.rows) {
      const std::string standard =
          row.standard.empty() || row.standard == "required" ? row.standard : str_cat("`", row.standard, "`");
      text += str_cat("| `", row.name, "` | ", row.type, " | ", standard, " | ", row.meaning, " |\n");
    }
    text += "\n";
  }
  return text;
}

std::string path_of_field(std::string_view name) {
  std::string path;
  std::ptrdiff_t depth = 0;
  bool alone = false;
  const Documenter documenter = documented();
  for (const Section& section : documenter.sections()) {
    for (const Row& row : section.rows) {
      if (!equal_ignoring_case(row.name, name)) continue;
      const std::ptrdiff_t its = std::ranges::count(row.path, '.');
      alone = path.empty() || its < depth - 1 || (alone && its > depth + 1);
      if (!path.empty() && its >= depth) continue;
      path = row.path;
      depth = its;
    }
  }
  return alone ? path : "";
}

}  // namespace paceline::api
