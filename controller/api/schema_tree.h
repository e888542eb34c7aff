#pragma once

// A structural schema of Kubernetes as a tree, and its YAML. Pure; internal to controller/api.

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace paceline::api {

// One x-kubernetes-validations entry. A rule that names oldSelf is checked when a job is edited.
struct SchemaRule {
  std::string rule, message;
  std::string field = {};        // the field that is at fault, below the rule's own: "train.labels"
  const char* reason = nullptr;  // of the API server's list; absent: FieldValueInvalid
};

struct Schema {
  std::string name;         // in the map around it
  std::string description;  // sentences
  std::string type;         // empty: any
  bool open = false;        // other fields are kept
  // minimum, pattern, default, ...: name and YAML scalar or flow value, in order.
  std::vector<std::pair<std::string, std::string>> limits = {};
  std::vector<Schema> properties = {};
  std::vector<std::string> required = {};
  std::vector<Schema> items = {}, values = {};  // one, or none: of a list, and of a map with any keys
  std::vector<SchemaRule> rules = {};

  void limit(std::string name, std::string value) { limits.emplace_back(std::move(name), std::move(value)); }
  // The schema at "a.b.*.c.[]": '*' is a map's values, "[]" a list's items. REQUIRES: it is there.
  Schema& at(std::string_view path);
  Schema* property(std::string_view property_name);
};

// One space an indentation step; the first line begins after `indent` spaces.
void write_schema(const Schema& schema, std::size_t indent, std::string& out);

// A text as one YAML scalar that every reader takes for this text.
std::string yaml_text(std::string_view text);

}  // namespace paceline::api
