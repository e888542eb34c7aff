#include "base/dtype.h"

#include <array>

namespace paceline {

namespace {
constexpr std::array<const char*, kDTypeCount> kNames = {"F32", "F64", "BF16", "F16", "I32", "I64"};
}

const char* dtype_name(DType dtype) {
  return kNames[static_cast<std::size_t>(dtype)];
}

std::optional<DType> parse_dtype(std::string_view name) {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (name == kNames[i]) return static_cast<DType>(i);
  }
  return std::nullopt;
}

Float16::Float16(float value) {
  const auto u = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (u >> 16) & 0x8000u;
  const std::uint32_t magnitude = u & 0x7fffffffu;
  std::uint32_t result;
  if (magnitude > 0x7f800000u) {
    result = 0x7e00u | ((magnitude >> 13) & 0x3ffu);  // NaN, quiet
  } else if (magnitude >= 0x477ff000u) {
    result = 0x7c00u;  // rounds to infinity
  } else if (magnitude >= 0x38800000u) {
    const std::uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
    result = (rounded - 0x38000000u) >> 13;
  } else {
    // Subnormal or zero: adding 0.5 aligns the mantissa so that the hardware rounds it to nearest even.
    const float aligned = std::bit_cast<float>(magnitude) + 0.5f;
    result = std::bit_cast<std::uint32_t>(aligned) - 0x3f000000u;
  }
  bits = static_cast<std::uint16_t>(sign | result);
}

Float16::operator float() const {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1fu;
  const std::uint32_t mantissa = bits & 0x3ffu;
  if (exponent == 0x1fu) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  const float magnitude = static_cast<float>(mantissa) * 0x1.0p-24f;
  return sign != 0 ? -magnitude : magnitude;
}

}  // namespace paceline
