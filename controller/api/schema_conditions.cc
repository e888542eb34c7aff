// Which fields go with which value of a choice is told by the table itself: it is walked once for every value
// of every choice, and the fields whose `applies` differs depend on it.

#include <cstdint>
#include <map>
#include <set>

#include "base/text.h"
#include "controller/api/fields.h"
#include "controller/api/schema_maker.h"

namespace paceline::api {

namespace {

struct ChoiceSeen {
  std::span<const Choice> choices;
  std::size_t standard = 0;
  bool required = false;
};
struct FieldSeen {
  When when;
  bool required = false;
};

// Walks the whole table, whatever applies, with one choice at one value.
class Prober final : public FieldVisitor {
 public:
  Prober(std::string choice, std::size_t value) : choice_(std::move(choice)), value_(value) {}

  std::map<std::string, ChoiceSeen> choices;
  std::map<std::string, FieldSeen> fields;  // those that do not always apply

  bool begin(const Field& field, bool) override {
    note(field);
    parents_.push_back(path_of(field.name));
    return true;
  }
  void end() override { parents_.pop_back(); }
  std::size_t begin_list(const Field& field, std::size_t, CountRange) override {
    begin(field, true);
    return 0;
  }
  bool begin_item(std::size_t) override { return false; }
  void constant(const Field& field, std::string_view) override { note(field); }
  void text(const Field& field, TextKind, std::string&) override { note(field); }
  void flag(const Field& field, bool&) override { note(field); }
  void bytes(const Field& field, IntegerRange, std::int64_t&) override { note(field); }
  void cores(const Field& field, bool, double&) override { note(field); }
  void integers(const Field& field, IntegerRange, CountRange, std::vector<std::int64_t>&) override {
    note(field);
  }
  void texts(const Field& field, TextKind, CountRange, std::vector<std::string>&) override { note(field); }
  void labels(const Field& field, bool, std::map<std::string, std::string>&) override { note(field); }
  void parameters(const Field& field, std::map<std::string, std::string>&) override { note(field); }

 protected:
  std::optional<std::int64_t> on_integer(const Field& field, IntegerRange,
                                         std::optional<std::int64_t> value) override {
    note(field);
    return value;
  }
  std::optional<double> on_number(const Field& field, NumberRange, std::optional<double> value) override {
    note(field);
    return value;
  }
  std::optional<std::size_t> on_choice(const Field& field, std::span<const Choice> options,
                                       std::optional<std::size_t> value) override {
    note(field);
    if (!value) return value;  // nothing depends on one that may be absent
    const std::string path = path_of(field.name);
    choices[path] = {options, *value, field.required};
    return path == choice_ ? value_ : *value;
  }

 private:
  std::string path_of(std::string_view name) const {
    return parents_.empty() ? std::string(name) : str_cat(parents_.back(), ".", name);
  }
  void note(const Field& field) {
    if (*field.when.only_with != '\0') fields[path_of(field.name)] = {field.when, field.required};
  }

  const std::string choice_;
  const std::size_t value_;
  std::vector<std::string> parents_;
};

Prober probe(const std::string& choice, std::size_t value) {
  Prober prober(choice, value);
  TrainingJob job;
  visit(prober, job);
  return prober;
}

// "has(self.train) && has(self.train.labels)"; a list of its parts.
std::vector<std::string> presence(Schema& parent, std::string_view path) {
  std::vector<std::string> parts;
  std::string above = "self";
  Schema* schema = &parent;
  for (std::size_t start = 0; start <= path.size();) {
    const std::size_t end = std::min(path.find('.', start), path.size());
    const std::string name(path.substr(start, end - start));
    schema = &schema->at(name);
    parts.push_back(is_visible_to_rules(*schema) ? str_cat("has(", above, ".", name, ")")
                                                 : str_cat("has(dyn(", above, ").", name, ")"));
    above += str_cat(".", name);
    start = end + 1;
  }
  return parts;
}

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += str_cat(text.empty() ? "" : " && ", part);
  return text;
}

void add_rules(Schema& parent, std::string_view path, std::string_view chosen, const FieldSeen& field) {
  std::vector<std::string> parts = presence(parent, path);
  parent.rules.push_back({str_cat(chosen, " || !(", joined(parts), ")"),
                          str_cat("allowed: only with ", field.when.only_with), std::string(path)});
  if (!field.required) return;
  const std::string last = parts.back();
  parts.pop_back();
  const std::string around = parts.empty() ? "" : str_cat(" || !(", joined(parts), ")");
  parent.rules.push_back({str_cat("!(", chosen, ")", around, " || ", last),
                          str_cat(path, " is required with ", field.when.only_with), "",
                          "FieldValueRequired"});
}

}  // namespace

void add_conditions(Schema& job) {
  const Prober first = probe("", 0);
  for (const auto& [path, choice] : first.choices) {
    std::vector<Prober> probes;
    for (std::size_t i = 0; i < choice.choices.size() && !choice.choices[i].reserved; ++i)
      probes.push_back(probe(path, i));
    const std::size_t dot = path.rfind('.');
    const std::string parent = path.substr(0, dot), name = path.substr(dot + 1);
    for (const auto& [field_path, field] : first.fields) {
      std::string values;
      std::size_t count = 0;
      for (std::size_t i = 0; i < probes.size(); ++i) {
        if (!probes[i].fields.at(field_path).when.applies) continue;
        values += str_cat(count++ == 0 ? "" : ", ", "\"", choice.choices[i].name, "\"");
      }
      if (count == 0 || count == probes.size()) continue;
      const std::string given = choice.required ? str_cat("self.", name)
                                                : str_cat("self.?", name, ".orValue(\"",
                                                          choice.choices[choice.standard].name, "\")");
      add_rules(job.at(parent), std::string_view(field_path).substr(parent.size() + 1),
                str_cat(given, " in [", values, "]"), field);
    }
  }
}

}  // namespace paceline::api
