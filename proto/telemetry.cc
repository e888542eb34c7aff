#include "proto/telemetry.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "base/sanitize.h"

namespace paceline {

namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr std::size_t kMaxTextBytes = 64;

// Null: the message has no field of that name.
const FieldDescriptor* find(const Message& message, const NamedField& field) {
  return message.GetDescriptor()->FindFieldByCamelcaseName(field.name);
}

struct Put {
  Message& message;
  const Reflection& reflection = *message.GetReflection();

  template <typename T>
  void operator()(const NamedField& field, const std::optional<T>& value) const {
    if (value) set(find(message, field), *value);
  }
  template <typename T>
  void operator()(const NamedField& field, const T& value) const {
    if (value != T()) set(find(message, field), value);
  }
  void operator()(const NamedField& field, const std::vector<std::string>& texts) const {
    const FieldDescriptor* const list = find(message, field);
    reflection.ClearField(&message, list);
    for (const std::string& text : texts) reflection.AddString(&message, list, text);
  }

 private:
  void set(const FieldDescriptor* field, const std::string& text) const {
    reflection.SetString(&message, field, text);
  }
  void set(const FieldDescriptor* field, double value) const { reflection.SetDouble(&message, field, value); }
  void set(const FieldDescriptor* field, std::int64_t value) const {
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        return reflection.SetInt32(&message, field, static_cast<std::int32_t>(value));
      case FieldDescriptor::CPPTYPE_UINT32:
        return reflection.SetUInt32(&message, field, static_cast<std::uint32_t>(value));
      case FieldDescriptor::CPPTYPE_UINT64:
        return reflection.SetUInt64(&message, field, static_cast<std::uint64_t>(value));
      default:
        return reflection.SetInt64(&message, field, value);
    }
  }
};

struct Take {
  const Message& message;
  const Reflection& reflection = *message.GetReflection();

  template <typename T>
  void operator()(const NamedField& field, std::optional<T>& value) const {
    const FieldDescriptor* const there = find(message, field);
    if (there == nullptr || !reflection.HasField(message, there)) return;
    (*this)(field, value.emplace());
    if constexpr (std::is_same_v<T, double>) {
      if (!std::isfinite(reflection.GetDouble(message, there))) value.reset();
    }
  }
  void operator()(const NamedField& field, std::string& text) const {
    if (const FieldDescriptor* const there = find(message, field))
      text = utf8_prefix(reflection.GetString(message, there), kMaxTextBytes);
  }
  void operator()(const NamedField& field, double& value) const {
    const FieldDescriptor* const there = find(message, field);
    const double told = there == nullptr ? 0 : reflection.GetDouble(message, there);
    if (std::isfinite(told)) value = std::round(std::clamp(told, field.least, field.most) * 1000) / 1000;
  }
  void operator()(const NamedField& field, std::int64_t& value) const {
    if (const FieldDescriptor* const there = find(message, field)) value = bound(field, integer(there));
  }
  // An id: all of its bits count.
  void operator()(const NamedField& field, std::uint64_t& value) const {
    value = reflection.GetUInt64(message, find(message, field));
  }
  void operator()(const NamedField& field, std::vector<std::string>& texts) const {
    const FieldDescriptor* const there = find(message, field);
    for (int i = 0; i < count(field, there); ++i)
      texts.push_back(utf8_prefix(reflection.GetRepeatedString(message, there, i), kMaxTextBytes));
  }
  void operator()(const NamedField& field, std::vector<std::int64_t>& numbers) const {
    const FieldDescriptor* const there = find(message, field);
    for (int i = 0; i < count(field, there); ++i)
      numbers.push_back(bound(field, reflection.GetRepeatedInt64(message, there, i)));
    while (!numbers.empty() && numbers.back() == 0) numbers.pop_back();
  }
  void operator()(const NamedField& field, std::vector<HotRow>& rows) const {
    const FieldDescriptor* const there = find(message, field);
    for (int i = 0; i < count(field, there); ++i)
      HotRow::fields(Take{reflection.GetRepeatedMessage(message, there, i)}, rows.emplace_back());
  }

 private:
  static std::int64_t bound(const NamedField& field, std::int64_t value) {
    return std::clamp(value, static_cast<std::int64_t>(field.least), static_cast<std::int64_t>(field.most));
  }
  int count(const NamedField& field, const FieldDescriptor* there) const {
    return std::min(reflection.FieldSize(message, there), field.items);
  }
  std::int64_t integer(const FieldDescriptor* field) const {
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        return reflection.GetInt32(message, field);
      case FieldDescriptor::CPPTYPE_UINT32:
        return reflection.GetUInt32(message, field);
      case FieldDescriptor::CPPTYPE_UINT64:
        return static_cast<std::int64_t>(
            std::min<std::uint64_t>(reflection.GetUInt64(message, field), kMostCount));
      default:
        return reflection.GetInt64(message, field);
    }
  }
};

template <typename T>
T taken(const Message& message) {
  T value;
  T::fields(Take{message}, value);
  return value;
}

}  // namespace

void to_wire(const GpuTelemetry& value, v1::GpuStats& message) {
  GpuTelemetry::fields(Put{message}, value);
}

void to_wire(const KernelTelemetry& value, v1::KernelStats& message) {
  KernelTelemetry::fields(Put{message}, value);
}

KernelTelemetry telemetry_of(const v1::KernelStats& message) {
  return taken<KernelTelemetry>(message);
}
GpuTelemetry telemetry_of(const v1::GpuStats& message) {
  return taken<GpuTelemetry>(message);
}
StalenessTelemetry telemetry_of(const v1::StalenessStats& message) {
  return taken<StalenessTelemetry>(message);
}
ServerTelemetry telemetry_of(const v1::ServerStats& message) {
  return taken<ServerTelemetry>(message);
}

}  // namespace paceline
