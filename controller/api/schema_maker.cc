#include "controller/api/schema_maker.h"

#include <cmath>
#include <limits>

#include "base/text.h"
#include "controller/api/fields.h"

namespace paceline::api {

namespace {

// What a field without a type may not be: a list or a map is never both empty and of one item.
void refuse_lists(Schema& schema) {
  schema.limit("minItems", "1");
  schema.limit("maxItems", "0");
}
void refuse_maps(Schema& schema) {
  schema.limit("minProperties", "1");
  schema.limit("maxProperties", "0");
}
void refuse_numbers(Schema& schema) {
  schema.limit("minimum", "1");
  schema.limit("maximum", "0");
}
void refuse_truth_values(Schema& schema) {
  schema.limit("not", "{enum: [true, false]}");
}

// text_rule_broken() in regular expressions.
void limit_text(Schema& schema, TextKind kind) {
  const auto limits = [&](std::size_t max, const char* pattern) {
    if (max > 0) schema.limit("maxLength", str_cat(max));
    schema.limit("pattern", yaml_text(pattern));
  };
  switch (kind) {
    case TextKind::kAny:
      return limits(0, "^[^\\x00]*$");
    case TextKind::kJobName:
      return limits(50, "^[a-z]([-a-z0-9]*[a-z0-9])?$");
    case TextKind::kNamespace:
    case TextKind::kContainerName:
      return limits(63, "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$");
    case TextKind::kImage:
      return limits(0, "^[^ \\x00-\\x1f\\x7f]+$");
    case TextKind::kEnvName:
      schema.rules.push_back(
          {R"(!self.startsWith("PACELINE_") || self == "PACELINE_DEVICE" || self == "PACELINE_CUDA_GRAPHS")",
           "names that begin with PACELINE_ are set by Paceline itself, but for PACELINE_DEVICE and "
           "PACELINE_CUDA_GRAPHS"});
      return limits(1024, "^[-._a-zA-Z][-._a-zA-Z0-9]*$");
    case TextKind::kCustomName:
      return limits(63, "^[a-zA-Z0-9]([-_.a-zA-Z0-9]*[a-zA-Z0-9])?$");
    case TextKind::kObjectName:
      return limits(253, "^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$");
    case TextKind::kManager:
      return limits(63, "^[a-z0-9]([-.a-z0-9]*[a-z0-9])?/[a-zA-Z0-9]([-_.a-zA-Z0-9]*[a-zA-Z0-9])?$");
    case TextKind::kPath:
      return limits(4096, "^[^\\x00-\\x1f\\x7f]+$");
  }
}

void limit_count(Schema& list, CountRange count) {
  if (count.min > 0) list.limit("minItems", str_cat(count.min));
  list.limit("maxItems", str_cat(count.max));
}

class Maker final : public FieldVisitor {
 public:
  explicit Maker(Schema& root) { open_.push_back({&root}); }

  bool begin(const Field& field, bool) override {
    Schema* made = nullptr;
    if (field.any_case) {
      // Names of roles are in any case: all have the schema of the one that has every field.
      if (std::string_view(field.name) != "worker") return false;
      open_.back().schema->limit("maxProperties", "4");
      made = &open_.back().schema->values.emplace_back();
      made->description = "The pods of one role.";
    } else {
      made = &add(field, "object");
    }
    made->type = "object";
    made->open = field.open;
    open_.push_back({made});
    return true;
  }
  void end() override {
    const auto [ended, key] = open_.back();
    open_.pop_back();
    if (*key != '\0') add_map_key(*ended, key);
  }
  std::size_t begin_list(const Field& field, std::size_t, CountRange count) override {
    Schema& list = add(field, "array");
    limit_count(list, count);
    Schema& item = list.items.emplace_back();
    item.type = "object";
    item.open = field.open;
    open_.push_back({&list, field.key});
    return 1;
  }
  bool begin_item(std::size_t) override {
    open_.push_back({&open_.back().schema->items[0]});
    return true;
  }

  void constant(const Field& field, std::string_view) override { add(field, "string"); }
  void text(const Field& field, TextKind kind, std::string& value) override {
    limit_text(add(field, "string", value), kind);
  }
  void flag(const Field& field, bool& value) override { add(field, "boolean", value ? "true" : ""); }
  void bytes(const Field& field, IntegerRange range, std::int64_t& value) override {
    Schema& made = add(field, "", str_cat(value));
    made.limit("x-kubernetes-int-or-string", "true");
    made.limit("maxLength", "20");
    made.limit("pattern", yaml_text("^(0|[1-9][0-9]*)(k|M|G|Ki|Mi|Gi)?$"));
    limit_integer(made, range);
    made.rules.push_back(
        {str_cat(R"(type(self) != string || (quantity(self).compareTo(quantity(")", range.min,
                 R"(")) >= 0 && quantity(self).compareTo(quantity(")", range.max, R"(")) <= 0))"),
         str_cat("out of range; allowed: ", describe(range))});
  }
  // A quantity may be a number or a text, which no type of a structural schema is.
  void cores(const Field& field, bool zero, double&) override {
    Schema& made = add(field, "");
    made.open = true;
    made.limit("pattern",
               yaml_text(zero ? "^[0-9]+(\\.[0-9]*)?m?$|^\\.[0-9]+m?$"
                              : "^[0-9]*[1-9][0-9]*(\\.[0-9]*)?m?$|^[0-9]*\\.[0-9]*[1-9][0-9]*m?$"));
    made.limit("minimum", "0");
    if (!zero) made.limit("exclusiveMinimum", "true");
    made.limit("maximum", "1024");
    refuse_lists(made);
    refuse_maps(made);
    refuse_truth_values(made);
  }
  void integers(const Field& field, IntegerRange range, CountRange count,
                std::vector<std::int64_t>&) override {
    Schema& list = add(field, "array");
    limit_count(list, count);
    Schema& item = list.items.emplace_back();
    item.type = "integer";
    limit_integer(item, range);
  }
  void texts(const Field& field, TextKind kind, CountRange count, std::vector<std::string>&) override {
    Schema& list = add(field, count.lone_item ? "" : "array");
    list.open = count.lone_item;
    limit_count(list, count);
    Schema& item = list.items.emplace_back();
    item.type = "string";
    limit_text(item, kind);
    if (!count.lone_item) return;
    limit_text(list, kind);
    refuse_maps(list);
    refuse_numbers(list);
    refuse_truth_values(list);
  }
  void labels(const Field&, bool, std::map<std::string, std::string>&) override {}  // in metadata only
  void parameters(const Field& field, std::map<std::string, std::string>&) override {
    Schema& scalar = add(field, "object").values.emplace_back();
    scalar.open = true;
    refuse_lists(scalar);
    refuse_maps(scalar);
  }

 protected:
  std::optional<std::int64_t> on_integer(const Field& field, IntegerRange range,
                                         std::optional<std::int64_t> value) override {
    // The scale subresource reads what stands in the object.
    const bool scaled = std::string_view(field.name) == "replicas";
    Schema& made = add(field, "integer", value && !scaled ? str_cat(*value) : "");
    if (scaled) made.limit("default", str_cat(*value));
    limit_integer(made, range);
    return value;
  }
  std::optional<double> on_number(const Field& field, NumberRange range,
                                  std::optional<double> value) override {
    Schema& made = add(field, "number", value ? format_number(*value) : "");
    if (range.min > std::numeric_limits<double>::lowest()) {
      made.limit("minimum", format_number(range.min));
      if (range.above_min) made.limit("exclusiveMinimum", "true");
      // Of a number without a fraction the API server cuts the bound's off.
      const double whole = std::trunc(range.min);
      if (whole != range.min)
        made.rules.push_back(
            {str_cat("self >= ", format_number(range.min)), str_cat("allowed: ", describe(range))});
    }
    if (range.max < std::numeric_limits<double>::max()) {
      made.limit("maximum", format_number(range.max));
      if (range.below_max) made.limit("exclusiveMaximum", "true");
    }
    return value;
  }
  std::optional<std::size_t> on_choice(const Field& field, std::span<const Choice> choices,
                                       std::optional<std::size_t> value) override {
    std::string names;
    for (const Choice& choice : choices) {
      if (!choice.reserved) names += str_cat(names.empty() ? "" : ", ", yaml_text(choice.name));
    }
    add(field, "string", value ? choices[*value].name : "").limit("enum", str_cat("[", names, "]"));
    return value;
  }

 private:
  struct Open {
    Schema* schema;
    const char* key = "";  // of a list
  };

  // The API server knows keys that every item has; for others it takes a rule.
  static void add_map_key(Schema& list, std::string_view key) {
    if (!list.items[0].required.empty()) {
      list.limit("x-kubernetes-list-type", "map");
      list.limit("x-kubernetes-list-map-keys", str_cat("[", key, "]"));
      return;
    }
    list.rules.push_back({str_cat("self.all(a, !has(a.", key, ") || self.exists_one(b, has(b.", key,
                                  ") && b.", key, " == a.", key, "))"),
                          str_cat("each ", key, " once")});
  }

  Schema& add(const Field& field, const char* type, std::string_view standard = "") {
    Schema& parent = *open_.back().schema;
    if (field.required && *field.when.only_with == '\0') parent.required.emplace_back(field.name);
    Schema& made = parent.properties.emplace_back();
    made.name = field.name;
    made.type = type;
    made.description = field.meaning;
    if (*field.when.only_with != '\0') made.description += str_cat(" (only with ", field.when.only_with, ")");
    made.description += ".";
    if (!field.required && !standard.empty()) made.description += str_cat(" Default: ", standard, ".");
    return made;
  }
  static void limit_integer(Schema& schema, IntegerRange range) {
    if (schema.type == "integer") schema.limit("format", "int64");
    schema.limit("minimum", str_cat(range.min));
    if (range.max < std::numeric_limits<std::int64_t>::max()) schema.limit("maximum", str_cat(range.max));
    if (range.odd) schema.rules.push_back({"self % 2 == 1", str_cat("allowed: ", describe(range))});
  }

  // The innermost is the last of its parent: nothing is added beside it while it is open, so it stays where
  // it is.
  std::vector<Open> open_;
};

}  // namespace

bool is_visible_to_rules(const Schema& schema) {
  if (schema.type.empty()) return false;
  return schema.values.empty() || !schema.values[0].type.empty();
}

Schema schema_of_fields() {
  Schema root{.type = "object"};
  TrainingJob job;
  Maker maker(root);
  visit(maker, job);
  return root;
}

}  // namespace paceline::api
