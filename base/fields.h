#pragma once

// Values that list their fields once, for everything that carries them:
//
//   static void fields(auto&& visit, auto& x) { visit(NamedField{"step", "Steps applied so far."}, x.step);
//   ... }
//
// JSON is written and read by such a list (controller/cluster/kube/field_json.h), the CRD's schema is made
// from it (controller/api/schema_status.cc), and telemetry goes over the wire by it (proto/telemetry.h).

#include <cstdint>

namespace paceline {

// Counts up to here are exact in every JSON reader.
inline constexpr std::int64_t kMostCount = std::int64_t{1} << 53;

// One field: its name in JSON (the wire has it in snake_case), its meaning, and what it may be. Values off
// the wire are taken into [least, most]; of a list the first `items` count. JSON leaves out what is empty or
// zero, but for fields that are `always` there.
struct NamedField {
  const char* name;
  const char* about = "";
  double least = 0, most = static_cast<double>(kMostCount);
  int items = 8;
  bool always = false;
};

namespace fields_internal {
struct Any {
  void operator()(const NamedField&, const auto&) const {}
};
}  // namespace fields_internal

template <typename T>
concept HasFields = requires(T& value) {
  T::fields(fields_internal::Any(), value);
};

}  // namespace paceline
