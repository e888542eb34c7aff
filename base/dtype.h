#pragma once

// Element types of tensors and collectives, and the two 16-bit floats in software. Pure.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace paceline {

enum class DType : std::uint8_t { kF32 = 0, kF64 = 1, kBF16 = 2, kF16 = 3, kI32 = 4, kI64 = 5 };
inline constexpr int kDTypeCount = 6;

// Bytes of one element.
constexpr std::size_t dtype_bytes(DType dtype) {
  switch (dtype) {
    case DType::kBF16:
    case DType::kF16:
      return 2;
    case DType::kF32:
    case DType::kI32:
      return 4;
    case DType::kF64:
    case DType::kI64:
      return 8;
  }
  return 0;
}

// As safetensors spells them: F32, F64, BF16, F16, I32, I64.
const char* dtype_name(DType dtype);
std::optional<DType> parse_dtype(std::string_view name);

// bfloat16: the upper half of a float; rounding to nearest, ties to even; NaN stays NaN.
struct BFloat16 {
  std::uint16_t bits = 0;
  BFloat16() = default;
  explicit BFloat16(float value) {
    auto u = std::bit_cast<std::uint32_t>(value);
    if ((u & 0x7fffffffu) > 0x7f800000u) {
      bits = static_cast<std::uint16_t>((u >> 16) | 0x40u);
    } else {
      bits = static_cast<std::uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
    }
  }
  explicit operator float() const { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
};

// IEEE 754 binary16, rounding to nearest, ties to even.
struct Float16 {
  std::uint16_t bits = 0;
  Float16() = default;
  explicit Float16(float value);
  explicit operator float() const;
};

static_assert(sizeof(BFloat16) == 2 && sizeof(Float16) == 2);

}  // namespace paceline
