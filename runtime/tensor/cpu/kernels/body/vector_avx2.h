#pragma once

// F in two registers.

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace paceline::tensor::cpu {
namespace {

constexpr std::size_t kLanes = 16;

struct F {
  __m256 a, b;
};
inline F zero() {
  return {_mm256_setzero_ps(), _mm256_setzero_ps()};
}
inline F set(float x) {
  return {_mm256_set1_ps(x), _mm256_set1_ps(x)};
}
inline F load(const float* p) {
  return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
}
inline void store(float* p, F x) {
  _mm256_storeu_ps(p, x.a);
  _mm256_storeu_ps(p + 8, x.b);
}
// Lanes [0, n) of eight, all of them for n >= 8, none for n <= 0.
inline __m256i first(std::ptrdiff_t n) {
  const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), lane);
}
inline F load(const float* p, std::size_t n) {
  const auto m = static_cast<std::ptrdiff_t>(n);
  return {_mm256_maskload_ps(p, first(m)), _mm256_maskload_ps(p + 8, first(m - 8))};
}
inline void store(float* p, F x, std::size_t n) {
  const auto m = static_cast<std::ptrdiff_t>(n);
  _mm256_maskstore_ps(p, first(m), x.a);
  _mm256_maskstore_ps(p + 8, first(m - 8), x.b);
}
inline F operator+(F x, F y) {
  return {_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)};
}
inline F operator-(F x, F y) {
  return {_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)};
}
inline F operator*(F x, F y) {
  return {_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)};
}
inline F operator/(F x, F y) {
  return {_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)};
}
inline F fma(F x, F y, F z) {
  return {_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)};
}
inline F sqrt(F x) {
  return {_mm256_sqrt_ps(x.a), _mm256_sqrt_ps(x.b)};
}

inline F max(F x, F y) {
  return {_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)};
}
inline F min(F x, F y) {
  return {_mm256_min_ps(x.a, y.a), _mm256_min_ps(x.b, y.b)};
}
inline F if_less(F x, F y, F yes, F no) {
  return {_mm256_blendv_ps(no.a, yes.a, _mm256_cmp_ps(x.a, y.a, _CMP_LT_OQ)),
          _mm256_blendv_ps(no.b, yes.b, _mm256_cmp_ps(x.b, y.b, _CMP_LT_OQ))};
}
inline F keep(F x, std::size_t n, F other) {
  const auto m = static_cast<std::ptrdiff_t>(n);
  return {_mm256_blendv_ps(other.a, x.a, _mm256_castsi256_ps(first(m))),
          _mm256_blendv_ps(other.b, x.b, _mm256_castsi256_ps(first(m - 8)))};
}
inline __m256 power_of_two(__m256 shifted) {
  const __m256i bits = _mm256_slli_epi32(_mm256_castps_si256(shifted), 23);
  return _mm256_castsi256_ps(_mm256_add_epi32(bits, _mm256_set1_epi32(0x3f800000)));
}
inline F power_of_two(F shifted) {
  return {power_of_two(shifted.a), power_of_two(shifted.b)};
}
inline __m256 halves_sum(F x) {
  return _mm256_add_ps(x.a, x.b);
}
inline __m256 halves_max(F x) {
  return _mm256_max_ps(x.a, x.b);
}

struct D {
  __m256d a, b, c, d;
};
inline D zero_d() {
  return {_mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd()};
}
inline D widen(F x) {
  return {_mm256_cvtps_pd(_mm256_castps256_ps128(x.a)), _mm256_cvtps_pd(_mm256_extractf128_ps(x.a, 1)),
          _mm256_cvtps_pd(_mm256_castps256_ps128(x.b)), _mm256_cvtps_pd(_mm256_extractf128_ps(x.b, 1))};
}
inline D fma(D x, D y, D z) {
  return {_mm256_fmadd_pd(x.a, y.a, z.a), _mm256_fmadd_pd(x.b, y.b, z.b), _mm256_fmadd_pd(x.c, y.c, z.c),
          _mm256_fmadd_pd(x.d, y.d, z.d)};
}
inline void store(double* p, D x) {
  _mm256_storeu_pd(p, x.a);
  _mm256_storeu_pd(p + 4, x.b);
  _mm256_storeu_pd(p + 8, x.c);
  _mm256_storeu_pd(p + 12, x.d);
}
// Folded 16 -> 8 -> 4 -> 2 -> 1, as at every level.
inline float sum(F x) {
  const __m256 h = halves_sum(x);
  const __m128 q = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
  const __m128 d = _mm_add_ps(q, _mm_movehl_ps(q, q));
  return _mm_cvtss_f32(_mm_add_ss(d, _mm_shuffle_ps(d, d, 1)));
}
inline float maximum(F x) {
  const __m256 h = halves_max(x);
  const __m128 q = _mm_max_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
  const __m128 d = _mm_max_ps(q, _mm_movehl_ps(q, q));
  return _mm_cvtss_f32(_mm_max_ss(d, _mm_shuffle_ps(d, d, 1)));
}

}  // namespace
}  // namespace paceline::tensor::cpu
