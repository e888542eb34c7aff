// What the controller writes: for those who read it. The API server does not refuse what is not listed.

#include <concepts>
#include <type_traits>

#include "base/text.h"
#include "controller/api/schema_rules.h"
#include "controller/api/types.h"

namespace paceline::api {

namespace {

Schema leaf(const char* name, const char* type, const char* description, const char* format = "") {
  Schema schema{.name = name, .description = description, .type = type};
  if (*format != '\0') schema.limit("format", format);
  return schema;
}
Schema text(const char* name, const char* description) {
  return leaf(name, "string", description);
}
Schema integer(const char* name, const char* description) {
  return leaf(name, "integer", description);
}
Schema moment(const char* name, const char* description) {
  return leaf(name, "string", description, "date-time");
}
Schema object(const char* name, const char* description, std::vector<Schema> properties) {
  return {.name = name,
          .description = description,
          .type = "object",
          .open = true,
          .properties = std::move(properties)};
}
Schema list(const char* name, std::string description, Schema item) {
  Schema schema{.name = name, .description = std::move(description), .type = "array"};
  schema.items.push_back(std::move(item));
  return schema;
}

std::string about_conditions() {
  std::string types;
  for (const char* type : kConditionTypes) types += str_cat(types.empty() ? "" : ", ", type);
  return str_cat(types, "; as of any object. Others are left to those who wrote them.");
}

Schema conditions();

// The schema of one field, by its type.
struct MakeSchema {
  std::vector<Schema>& properties;
  bool inner = false;  // of a part of the status: the objects in it are kept, and not described

  void operator()(const NamedField& f, const std::string&) const { add(f, "string"); }
  void operator()(const NamedField& f, bool) const { add(f, "boolean"); }
  void operator()(const NamedField& f, std::integral auto) const { add(f, "integer"); }
  void operator()(const NamedField& f, double) const { add(f, "number"); }
  void operator()(const NamedField& f, WallTime) const { properties.push_back(moment(f.name, f.about)); }
  template <typename Enum>
  requires std::is_enum_v<Enum>
  void operator()(const NamedField& f, Enum) const { add(f, "string"); }
  template <HasFields T>
  void operator()(const NamedField& f, const T&) const {
    properties.push_back(inner ? object(f.name, f.about, {}) : object_of<T>(f.name, f.about, true));
  }
  template <typename T>
  void operator()(const NamedField& f, const std::optional<T>&) const {
    (*this)(f, T());
  }
  template <typename T>
  void operator()(const NamedField& f, const std::vector<T>&) const {
    std::vector<Schema> items;
    if constexpr (HasFields<T>) {
      items.push_back(inner ? object("", "", {}) : object_of<T>("", "", true));
    } else {
      MakeSchema{items}(NamedField{""}, T());
    }
    properties.push_back(list(f.name, f.about, std::move(items[0])));
    if constexpr (std::integral<T>) properties.back().limit("maxItems", str_cat(f.items));
  }
  void operator()(const NamedField&, const std::vector<Condition>&) const {
    properties.push_back(conditions());
  }

  template <HasFields T>
  static Schema object_of(const char* name, const char* about, bool inner) {
    std::vector<Schema> properties;
    T value;
    T::fields(MakeSchema{properties, inner}, value);
    return object(name, about, std::move(properties));
  }

 private:
  void add(const NamedField& f, const char* type) const { properties.push_back(leaf(f.name, type, f.about)); }
};

Schema conditions() {
  std::vector<Schema> fields;
  Condition condition;
  Condition::fields(MakeSchema{fields}, condition);
  fields.push_back(text("status", "True, False or Unknown."));
  Schema schema = list("conditions", about_conditions(), object("", "", std::move(fields)));
  schema.items[0].required = {"type", "status"};
  schema.limit("x-kubernetes-list-type", "map");
  schema.limit("x-kubernetes-list-map-keys", "[type]");
  return schema;
}

}  // namespace

Schema schema_of_status() {
  Schema status =
      MakeSchema::object_of<Status>("status", "What became of it so far; written by the controller.", false);
  // The job's object has these beside our Status (kube_job_store.cc).
  for (Schema& more :
       std::vector{text("ready", "Pods that run, of those that the job wants: 3/4."),
                   integer("replicas", "Worker pods that there are; for the scale subresource."),
                   integer("lastCheckpointStep", "Updates that are in it.")})
    status.properties.push_back(std::move(more));
  return status;
}

}  // namespace paceline::api
