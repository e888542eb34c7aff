#include "controller/api/schema_tree.h"

#include <algorithm>

#include "base/check.h"
#include "base/text.h"

namespace paceline::api {

namespace {

constexpr std::size_t kStep = 1;  // so deep a tree would be a third of spaces else
constexpr std::size_t kDash = 2;

std::string spaces(std::size_t count) {
  return std::string(count, ' ');
}

// A list item's first line has its dash where the others have spaces.
void write_rule(const SchemaRule& rule, std::size_t indent, std::string& out) {
  out += str_cat(spaces(indent), "- rule: ", yaml_text(rule.rule), "\n");
  const std::string begin = spaces(indent + kDash);
  out += str_cat(begin, "message: ", yaml_text(rule.message), "\n");
  if (!rule.field.empty()) out += str_cat(begin, "fieldPath: ", yaml_text(str_cat(".", rule.field)), "\n");
  if (rule.reason != nullptr) out += str_cat(begin, "reason: ", rule.reason, "\n");
}

}  // namespace

std::string yaml_text(std::string_view text) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto plain = [&](char c) { return letter(c) || (c >= '0' && c <= '9') || c == '.' || c == '/'; };
  // Short words might be read as truth values.
  if (text.size() > 5 && letter(text[0]) && std::ranges::all_of(text, plain)) return std::string(text);
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("''") : std::string(1, c);
  return quoted + "'";
}

Schema* Schema::property(std::string_view property_name) {
  const auto found = std::ranges::find(properties, property_name, &Schema::name);
  return found == properties.end() ? nullptr : &*found;
}

Schema& Schema::at(std::string_view path) {
  if (path.empty()) return *this;
  const std::string_view first = path.substr(0, path.find('.'));
  const std::string_view rest = first.size() == path.size() ? "" : path.substr(first.size() + 1);
  if (first == "*") return values.at(0).at(rest);
  if (first == "[]") return items.at(0).at(rest);
  Schema* next = property(first);
  PL_CHECK(next != nullptr, "the schema has no field of this path");
  return next->at(rest);
}

void write_schema(const Schema& schema, std::size_t indent, std::string& out) {
  const std::string begin = spaces(indent);
  if (!schema.description.empty())
    out += str_cat(begin, "description: ", yaml_text(schema.description), "\n");
  if (!schema.type.empty()) out += str_cat(begin, "type: ", schema.type, "\n");
  if (schema.open) out += str_cat(begin, "x-kubernetes-preserve-unknown-fields: true\n");
  for (const auto& [name, value] : schema.limits) out += str_cat(begin, name, ": ", value, "\n");
  if (!schema.required.empty()) {
    std::string names;
    for (const std::string& name : schema.required) names += str_cat(names.empty() ? "" : ", ", name);
    out += str_cat(begin, "required: [", names, "]\n");
  }
  if (!schema.properties.empty()) out += str_cat(begin, "properties:\n");
  for (const Schema& each : schema.properties) {
    out += str_cat(spaces(indent + kStep), each.name, ":\n");
    write_schema(each, indent + 2 * kStep, out);
  }
  for (const Schema& each : schema.values) {
    out += str_cat(begin, "additionalProperties:\n");
    write_schema(each, indent + kStep, out);
  }
  for (const Schema& each : schema.items) {
    out += str_cat(begin, "items:\n");
    write_schema(each, indent + kStep, out);
  }
  if (!schema.rules.empty()) out += str_cat(begin, "x-kubernetes-validations:\n");
  for (const SchemaRule& rule : schema.rules) write_rule(rule, indent, out);
}

}  // namespace paceline::api
