#pragma once

// JSON of values that list their fields (base/fields.h). What is missing or of another type is left as it is.
// Pure.

#include <cmath>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/fields.h"
#include "controller/api/types.h"
#include "controller/cluster/kube/json.h"
#include "controller/cluster/kube/times.h"

namespace paceline::kube {

// The enumerators' last, and which one stands for a name that a newer controller has written.
template <typename Enum>
struct Names;
template <>
struct Names<Role> {
  static constexpr Role last = Role::kEvaluator, unknown = Role::kWorker;
  static const char* of(Role role) { return role_name(role); }
};
template <typename Enum, Enum kLast, Enum kUnknown>
struct ApiNames {
  static constexpr Enum last = kLast, unknown = kUnknown;
  static const char* of(Enum value) { return api::name(value); }
};
template <>
struct Names<api::Phase> : ApiNames<api::Phase, api::Phase::kSuspended, api::Phase::kPending> {};
template <>
struct Names<api::RestartCause>
    : ApiNames<api::RestartCause, api::RestartCause::kUnfit, api::RestartCause::kExited> {};
template <>
struct Names<api::FaultKind> : ApiNames<api::FaultKind, api::FaultKind::kUnfit, api::FaultKind::kFailed> {};
template <>
struct Names<api::ObservationKind>
    : ApiNames<api::ObservationKind, api::ObservationKind::kUnfit, api::ObservationKind::kSaid> {};
template <>
struct Names<api::PreflightOutcome>
    : ApiNames<api::PreflightOutcome, api::PreflightOutcome::kFailed, api::PreflightOutcome::kFailed> {};
template <>
struct Names<api::PreflightPart>
    : ApiNames<api::PreflightPart, api::PreflightPart::kLink, api::PreflightPart::kCompute> {};
template <>
struct Names<api::StragglerKind>
    : ApiNames<api::StragglerKind, api::StragglerKind::kSlowLink, api::StragglerKind::kSlow> {};
template <>
struct Names<api::StragglerCause>
    : ApiNames<api::StragglerCause, api::StragglerCause::kRequested, api::StragglerCause::kUnknown> {};
template <>
struct Names<api::StragglerAction>
    : ApiNames<api::StragglerAction, api::StragglerAction::kRebalance, api::StragglerAction::kReport> {};
template <>
struct Names<api::ReplacementOutcome> : ApiNames<api::ReplacementOutcome, api::ReplacementOutcome::kExcluded,
                                                 api::ReplacementOutcome::kOverBefore> {};

template <>
struct Names<api::RequestOutcome>
    : ApiNames<api::RequestOutcome, api::RequestOutcome::kFailed, api::RequestOutcome::kFailed> {};

template <HasFields T>
Json fields_to_json(const T& value);
template <HasFields T>
void fields_from_json(const Json& json, T& value);

// Writes one field into `json`; `all`: also what is empty or zero.
struct PutField {
  Json& json;
  bool all = false;

  void operator()(const NamedField& field, const std::string& text) const {
    if (all || field.always || !text.empty()) json[field.name] = text;
  }
  void operator()(const NamedField& field, std::integral auto number) const {
    if (all || field.always || number != 0) json[field.name] = number;
  }
  // No more than 63 bits are whole in JSON's readers: an id beyond is written as a negative number.
  void operator()(const NamedField& field, std::uint64_t number) const {
    (*this)(field, static_cast<std::int64_t>(number));
  }
  void operator()(const NamedField& field, double number) const {
    if ((all || field.always || number != 0) && std::isfinite(number)) json[field.name] = number;
  }
  void operator()(const NamedField& field, WallTime time) const { json[field.name] = format_wall_time(time); }
  template <typename Enum>
  requires std::is_enum_v<Enum>
  void operator()(const NamedField& field, Enum value) const { json[field.name] = Names<Enum>::of(value); }
  template <HasFields T>
  void operator()(const NamedField& field, const T& value) const {
    if (Json part = fields_to_json(value); !part.empty()) json[field.name] = std::move(part);
  }
  template <typename T>
  void operator()(const NamedField& field, const std::optional<T>& value) const {
    if (!value) return;
    NamedField there = field;
    there.always = true;
    if constexpr (HasFields<T>) {
      json[field.name] = fields_to_json(*value);
    } else {
      (*this)(there, *value);
    }
  }
  template <typename T>
  void operator()(const NamedField& field, const std::vector<T>& list) const {
    if (all) json[field.name] = Json::array();
    for (const T& each : list) {
      if constexpr (HasFields<T>) {
        json[field.name].push_back(fields_to_json(each));
      } else {
        json[field.name].push_back(each);
      }
    }
  }
};

// Reads one field of `json`.
struct TakeField {
  const Json& json;

  void operator()(const NamedField& field, std::string& text) const {
    if (const Json& there = at(json, {field.name}); there.is_string())
      text = there.get_ref<const std::string&>();
  }
  void operator()(const NamedField& field, bool& flag) const { flag = flag_at(json, {field.name}); }
  void operator()(const NamedField& field, std::integral auto& number) const {
    if (at(json, {field.name}).is_number_integer())
      number = static_cast<std::remove_reference_t<decltype(number)>>(integer_at(json, {field.name}));
  }
  void operator()(const NamedField& field, double& number) const {
    number = number_at(json, {field.name}).value_or(number);
  }
  void operator()(const NamedField& field, WallTime& time) const {
    time = parse_time(text_at(json, {field.name})).value_or(time);
  }
  template <typename Enum>
  requires std::is_enum_v<Enum>
  void operator()(const NamedField& field, Enum& value) const {
    const std::string& name = text_at(json, {field.name});
    value = Names<Enum>::unknown;
    for (int i = 0; i <= static_cast<int>(Names<Enum>::last); ++i) {
      if (name == Names<Enum>::of(static_cast<Enum>(i))) value = static_cast<Enum>(i);
    }
  }
  template <HasFields T>
  void operator()(const NamedField& field, T& value) const {
    fields_from_json(at(json, {field.name}), value);
  }
  template <typename T>
  void operator()(const NamedField& field, std::optional<T>& value) const {
    const Json& there = at(json, {field.name});
    if constexpr (std::same_as<T, WallTime>) {
      value = parse_time(text_at(json, {field.name}));
    } else if (HasFields<T>                   ? there.is_object()
               : std::same_as<T, std::string> ? there.is_string()
               : std::integral<T>             ? there.is_number_integer()
                                              : there.is_number()) {
      (*this)(field, value.emplace());
    }
  }
  template <typename T>
  void operator()(const NamedField& field, std::vector<T>& list) const {
    for (const Json& each : list_at(json, {field.name})) {
      if constexpr (HasFields<T>) {
        fields_from_json(each, list.emplace_back());
      } else if constexpr (std::integral<T>) {
        list.push_back(integer_at(each, {}));
      } else {
        list.push_back(text_at(each, {}));
      }
    }
  }
};

template <HasFields T>
Json fields_to_json(const T& value) {
  Json json = Json::object();
  T::fields(PutField{json}, value);
  if constexpr (std::same_as<T, api::Condition>)
    json["status"] = value.unknown ? "Unknown" : value.status ? "True" : "False";
  return json;
}

template <HasFields T>
void fields_from_json(const Json& json, T& value) {
  T::fields(TakeField{json}, value);
  if constexpr (std::same_as<T, api::Condition>) {
    const std::string& status = text_at(json, {"status"});
    value.status = status == "True";
    value.unknown = !value.status && status != "False";
  }
}

}  // namespace paceline::kube
