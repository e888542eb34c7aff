#pragma once

// A value of a categorical field, and the 64-bit id of its row in sparse tables (docs/checkpoints.md): they
// determine each other. Pure.

#include <cstdint>
#include <optional>

namespace paceline {

struct Category {
  std::int64_t field = 0;
  std::int32_t value = 0;

  bool operator==(const Category&) const = default;
};

// mix64((field + 1) * 2^32 + value). REQUIRES: field < 2^31, value >= 0.
std::uint64_t category_id(const Category& category);
// What it is the id of; none: of no value of the first 65,536 fields, so of a combination of values, whose
// ids are hashes (one in 100,000 of these is taken for a value's).
std::optional<Category> category_of(std::uint64_t id);

}  // namespace paceline
