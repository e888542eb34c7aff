#pragma once

// F as an array; each operation is a loop of 16 that the compiler may vectorize.

#include <cstddef>
#include <cstdint>

namespace paceline::tensor::cpu {
namespace {

constexpr std::size_t kLanes = 16;

#define PACELINE_EACH_LANE(expression)                            \
  F r;                                                            \
  for (std::size_t i = 0; i < kLanes; ++i) r.v[i] = (expression); \
  return r

struct F {
  float v[kLanes];
};
inline F zero() {
  PACELINE_EACH_LANE(0.0f);
}
inline F set(float x) {
  PACELINE_EACH_LANE(x);
}
inline F load(const float* p) {
  PACELINE_EACH_LANE(p[i]);
}
inline void store(float* p, F x) {
  for (std::size_t i = 0; i < kLanes; ++i) p[i] = x.v[i];
}
inline F load(const float* p, std::size_t n) {
  PACELINE_EACH_LANE(i < n ? p[i] : 0.0f);
}
inline void store(float* p, F x, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) p[i] = x.v[i];
}
inline F operator+(F a, F b) {
  PACELINE_EACH_LANE(a.v[i] + b.v[i]);
}
inline F operator-(F a, F b) {
  PACELINE_EACH_LANE(a.v[i] - b.v[i]);
}
inline F operator*(F a, F b) {
  PACELINE_EACH_LANE(a.v[i] * b.v[i]);
}
inline F operator/(F a, F b) {
  PACELINE_EACH_LANE(a.v[i] / b.v[i]);
}
inline F fma(F a, F b, F c) {
  PACELINE_EACH_LANE(a.v[i] * b.v[i] + c.v[i]);
}
inline F sqrt(F a) {
  PACELINE_EACH_LANE(__builtin_sqrtf(a.v[i]));
}
inline F max(F a, F b) {
  PACELINE_EACH_LANE(a.v[i] > b.v[i] ? a.v[i] : b.v[i]);
}
inline F min(F a, F b) {
  PACELINE_EACH_LANE(a.v[i] < b.v[i] ? a.v[i] : b.v[i]);
}
inline F if_less(F a, F b, F yes, F no) {
  PACELINE_EACH_LANE(a.v[i] < b.v[i] ? yes.v[i] : no.v[i]);
}
inline F keep(F a, std::size_t n, F other) {
  PACELINE_EACH_LANE(i < n ? a.v[i] : other.v[i]);
}
inline float power_of_two(float shifted) {
  return __builtin_bit_cast(float, (__builtin_bit_cast(std::uint32_t, shifted) << 23) + 0x3f800000u);
}
inline F power_of_two(F shifted) {
  PACELINE_EACH_LANE(power_of_two(shifted.v[i]));
}

struct D {
  double v[kLanes];
};
inline D zero_d() {
  return D{};
}
inline D widen(F x) {
  D r;
  for (std::size_t i = 0; i < kLanes; ++i) r.v[i] = static_cast<double>(x.v[i]);
  return r;
}
inline D fma(D a, D b, D c) {
  D r;
  for (std::size_t i = 0; i < kLanes; ++i) r.v[i] = a.v[i] * b.v[i] + c.v[i];
  return r;
}
inline void store(double* p, D x) {
  for (std::size_t i = 0; i < kLanes; ++i) p[i] = x.v[i];
}

inline float sum(F x) {
  for (std::size_t width = kLanes / 2; width >= 1; width /= 2) {
    for (std::size_t i = 0; i < width; ++i) x.v[i] += x.v[i + width];
  }
  return x.v[0];
}
inline float maximum(F x) {
  for (std::size_t width = kLanes / 2; width >= 1; width /= 2) {
    for (std::size_t i = 0; i < width; ++i) x.v[i] = x.v[i] > x.v[i + width] ? x.v[i] : x.v[i + width];
  }
  return x.v[0];
}

#undef PACELINE_EACH_LANE

}  // namespace
}  // namespace paceline::tensor::cpu
