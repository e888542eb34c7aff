#pragma once

// The one table of a TrainingJob's fields: for each its name, type, range, when it applies, and what it
// means. visit() walks it over a job; what happens at each field is the visitor's: reading (reader.h),
// printing (print.cc), documenting (reference.h). Pure; internal to controller/api.
//
// The order of the fields is that of the documentation. A field on which others depend (a model's type)
// stands before them. A field's default is what the job holds when it is visited.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "controller/api/choices.h"
#include "controller/api/scalars.h"
#include "controller/api/types.h"

namespace paceline::api {

// Whether a field applies with the values read before it, and in words with which. One that does not apply
// is refused.
struct When {
  bool applies = true;
  const char* only_with = "";  // "type: cnn"; empty: always
};

struct Field {
  const char* name;
  const char* meaning = "";  // one sentence without its full stop
  bool required = false;
  When when = {};
  bool any_case = false;        // the name's letters may be of any case
  const char* if_missing = "";  // of a required map: what is allowed, said where it is missing
  const char* same_as = "";     // an object documented under this name
  bool open = false;            // of a map, or of a list's maps: fields that this table lacks are let through
  const char* key = "";         // of a list of maps: no two items have the same text in this field
  const char* lone = "";  // of a map: its field that a text, or a list of texts, in its place is meant for
  bool idle = false;      // it means nothing with the values read before it: it is not printed
  bool asks = false;      // of a map: an empty one asks for something, and none does not; null is an error
};

// Both ends belong to the range.
struct IntegerRange {
  std::int64_t min = 0;
  std::int64_t max = std::numeric_limits<std::int64_t>::max();
  bool odd = false;
};

struct NumberRange {
  double min = std::numeric_limits<double>::lowest();
  double max = std::numeric_limits<double>::max();
  bool above_min = false;  // min itself is outside
  bool below_max = false;  // max itself is outside
};

// Several fields have these ranges.
inline constexpr IntegerRange kPositive{.min = 1, .max = 1'000'000'000'000};
inline constexpr IntegerRange kWidth{.min = 1, .max = 1 << 20};
inline constexpr NumberRange kNotNegative{.min = 0, .max = 1e12};
inline constexpr NumberRange kAboveZero{.min = 0, .max = 1e12, .above_min = true};
inline constexpr NumberRange kBeta{.min = 0, .max = 1, .below_max = true};

struct CountRange {
  std::size_t min = 0, max = 0;
  bool lone_item = false;  // a single item may stand for a list of one
};

class FieldVisitor {
 public:
  virtual ~FieldVisitor() = default;

  // A map of fields: where it returns true, its fields are visited, then end(). `present` is false for an
  // optional one that the job lacks.
  virtual bool begin(const Field& field, bool present) = 0;
  virtual void end() = 0;
  // Before a map through which fields go that the table lacks: all of it, as YAML in one line; empty: none.
  // Where it returns true, the visitor has taken it so, and its fields are not visited.
  virtual bool whole(const Field&, std::string&) { return false; }
  // A list of maps: returns the number of items, for each of which begin_item() and end() follow, and then
  // end() for the list.
  virtual std::size_t begin_list(const Field& field, std::size_t size, CountRange count) = 0;
  virtual bool begin_item(std::size_t index) = 0;

  virtual void constant(const Field& field, std::string_view value) = 0;
  virtual void text(const Field& field, TextKind kind, std::string& value) = 0;
  virtual void flag(const Field& field, bool& value) = 0;
  virtual void bytes(const Field& field, IntegerRange range, std::int64_t& value) = 0;
  // `zero`: 0 is one of its values.
  virtual void cores(const Field& field, bool zero, double& value) = 0;
  virtual void integers(const Field& field, IntegerRange range, CountRange count,
                        std::vector<std::int64_t>& value) = 0;
  virtual void texts(const Field& field, TextKind kind, CountRange count,
                     std::vector<std::string>& value) = 0;
  virtual void labels(const Field& field, bool values_are_labels,
                      std::map<std::string, std::string>& value) = 0;
  virtual void parameters(const Field& field, std::map<std::string, std::string>& value) = 0;
  // Named in the design, not in this version: a visitor that reads refuses it with `advice`.
  virtual void reserved(const char* /*name*/, const char* /*advice*/) {}
  // Written by a cluster: accepted, and not read.
  virtual void ignored(const char* /*name*/) {}

  void integer(const Field& field, IntegerRange range, std::int64_t& value) {
    value = *on_integer(field, range, value);
  }
  void integer(const Field& field, IntegerRange range, std::optional<std::int64_t>& value) {
    value = on_integer(field, range, value);
  }
  void number(const Field& field, NumberRange range, double& value) {
    value = *on_number(field, range, value);
  }
  void number(const Field& field, NumberRange range, std::optional<double>& value) {
    value = on_number(field, range, value);
  }
  // A map that the job always has, and one that it may lack.
  template <typename Visit>
  void object(const Field& field, Visit&& fields) {
    if (!begin(field, true)) return;
    fields();
    end();
  }
  template <typename T, typename Visit>
  void optional_object(const Field& field, std::optional<T>& value, Visit&& fields) {
    if (!begin(field, value.has_value())) return;
    if (!value) value.emplace();
    fields(*value);
    end();
  }

  template <typename Enum>
  void choice(const Field& field, Enum& value) {
    value = static_cast<Enum>(*on_choice(field, kChoices<Enum>, static_cast<std::size_t>(value)));
  }
  template <typename Enum>
  void choice(const Field& field, std::optional<Enum>& value) {
    const auto given = value ? std::optional(static_cast<std::size_t>(*value)) : std::nullopt;
    const auto chosen = on_choice(field, kChoices<Enum>, given);
    value = chosen ? std::optional(static_cast<Enum>(*chosen)) : std::nullopt;
  }

 protected:
  // The new value, or `value` itself where nothing else is said: absent only if it was absent.
  virtual std::optional<std::int64_t> on_integer(const Field& field, IntegerRange range,
                                                 std::optional<std::int64_t> value) = 0;
  virtual std::optional<double> on_number(const Field& field, NumberRange range,
                                          std::optional<double> value) = 0;
  // An index into `choices` of one that is not reserved.
  virtual std::optional<std::size_t> on_choice(const Field& field, std::span<const Choice> choices,
                                               std::optional<std::size_t> value) = 0;
};

void visit(FieldVisitor& visitor, TrainingJob& job);
void visit(FieldVisitor& visitor, Training& training);  // fields_training.cc
void visit(FieldVisitor& visitor, Model& model);        // fields_model.cc

// Whether there may be data to evaluate on: a custom data set may bring its own, which only its program sees.
bool may_have_held_out_data(const Data& data);

// What a range or a list of choices allows, for people: "1 to 16", "> 0", "SGD, Adam, AdamW".
std::string describe(IntegerRange range);
std::string describe(NumberRange range);
std::string describe(CountRange count);
std::string describe(std::span<const Choice> choices);
bool contains(IntegerRange range, std::int64_t value);
bool contains(NumberRange range, double value);

}  // namespace paceline::api
