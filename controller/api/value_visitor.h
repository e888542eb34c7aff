#pragma once

// A visitor for which each field is its value as text: what printing and comparing jobs have in common. Pure;
// internal to controller/api.

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "controller/api/fields.h"

namespace paceline::api {

class ValueVisitor : public FieldVisitor {
 public:
  void text(const Field& field, TextKind, std::string& value) override { take(field, quoted(value)); }
  void flag(const Field& field, bool& value) override { take(field, value ? "true" : "false"); }
  void bytes(const Field& field, IntegerRange, std::int64_t& value) override { take(field, str_cat(value)); }
  void cores(const Field& field, bool /*zero*/, double& value) override { take(field, format_number(value)); }
  void integers(const Field& field, IntegerRange, CountRange, std::vector<std::int64_t>& value) override {
    std::vector<std::string> items;
    for (const std::int64_t item : value) items.push_back(str_cat(item));
    take_list(field, items);
  }
  void texts(const Field& field, TextKind, CountRange, std::vector<std::string>& value) override {
    std::vector<std::string> items;
    for (const std::string& item : value) items.push_back(quoted(item));
    take_list(field, items);
  }
  void labels(const Field& field, bool, std::map<std::string, std::string>& value) override {
    pairs(field, value);
  }
  void parameters(const Field& field, std::map<std::string, std::string>& value) override {
    pairs(field, value);
  }

 protected:
  virtual void take(const Field& field, const std::string& value) = 0;
  virtual void take_list(const Field& field, const std::vector<std::string>& items) = 0;
  virtual void take_map(const Field& field, const std::vector<std::string>& pairs) = 0;  // "key: value" each
  virtual std::string quoted(std::string_view text) const = 0;

  std::optional<std::int64_t> on_integer(const Field& field, IntegerRange,
                                         std::optional<std::int64_t> value) override {
    if (value) take(field, str_cat(*value));
    return value;
  }
  std::optional<double> on_number(const Field& field, NumberRange, std::optional<double> value) override {
    if (value) take(field, format_number(*value));
    return value;
  }
  std::optional<std::size_t> on_choice(const Field& field, std::span<const Choice> choices,
                                       std::optional<std::size_t> value) override {
    if (value) take(field, choices[*value].name);
    return value;
  }

 private:
  void pairs(const Field& field, const std::map<std::string, std::string>& value) {
    std::vector<std::string> pairs;
    for (const auto& [key, item] : value) pairs.push_back(str_cat(quoted(key), ": ", quoted(item)));
    take_map(field, pairs);
  }
};

}  // namespace paceline::api
