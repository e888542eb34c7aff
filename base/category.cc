#include "base/category.h"

#include "base/rng.h"

namespace paceline {

namespace {
constexpr std::uint64_t kFields = 65'536;

// What mix64() was given: each factor is the inverse, modulo 2^64, of the one that it undoes.
std::uint64_t unmix64(std::uint64_t z) {
  z = (z ^ (z >> 31) ^ (z >> 62)) * 0x319642b2d24d8ec3ULL;
  z = (z ^ (z >> 27) ^ (z >> 54)) * 0x96de1b173f119089ULL;
  return z ^ (z >> 30) ^ (z >> 60);
}

}  // namespace

std::uint64_t category_id(const Category& category) {
  return mix64((static_cast<std::uint64_t>(category.field + 1) << 32) |
               static_cast<std::uint32_t>(category.value));
}

std::optional<Category> category_of(std::uint64_t id) {
  const std::uint64_t key = unmix64(id), field = (key >> 32) - 1;
  const auto value = static_cast<std::int32_t>(static_cast<std::uint32_t>(key));
  if (field >= kFields || value < 0) return std::nullopt;
  return Category{static_cast<std::int64_t>(field), value};
}

}  // namespace paceline
