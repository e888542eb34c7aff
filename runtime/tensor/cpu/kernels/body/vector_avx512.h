#pragma once

// F in one register.

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace paceline::tensor::cpu {
namespace {

constexpr std::size_t kLanes = 16;

struct F {
  __m512 v;
};
inline F zero() {
  return {_mm512_setzero_ps()};
}
inline F set(float x) {
  return {_mm512_set1_ps(x)};
}
inline F load(const float* p) {
  return {_mm512_loadu_ps(p)};
}
inline void store(float* p, F x) {
  _mm512_storeu_ps(p, x.v);
}
inline __mmask16 first(std::size_t n) {
  return static_cast<__mmask16>((1u << n) - 1u);
}
// The first n < 16 lanes; the others read as zero.
inline F load(const float* p, std::size_t n) {
  return {_mm512_maskz_loadu_ps(first(n), p)};
}
inline void store(float* p, F x, std::size_t n) {
  _mm512_mask_storeu_ps(p, first(n), x.v);
}
inline F operator+(F a, F b) {
  return {_mm512_add_ps(a.v, b.v)};
}
inline F operator-(F a, F b) {
  return {_mm512_sub_ps(a.v, b.v)};
}
inline F operator*(F a, F b) {
  return {_mm512_mul_ps(a.v, b.v)};
}
inline F operator/(F a, F b) {
  return {_mm512_div_ps(a.v, b.v)};
}
inline F fma(F a, F b, F c) {
  return {_mm512_fmadd_ps(a.v, b.v, c.v)};
}
inline F sqrt(F a) {
  return {_mm512_sqrt_ps(a.v)};
}

inline F max(F a, F b) {
  return {_mm512_max_ps(a.v, b.v)};
}
inline F min(F a, F b) {
  return {_mm512_min_ps(a.v, b.v)};
}
inline F if_less(F a, F b, F yes, F no) {
  return {_mm512_mask_blend_ps(_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ), no.v, yes.v)};
}
inline F keep(F a, std::size_t n, F other) {
  return {_mm512_mask_blend_ps(first(n), other.v, a.v)};
}
inline F power_of_two(F shifted) {
  const __m512i bits = _mm512_slli_epi32(_mm512_castps_si512(shifted.v), 23);
  return {_mm512_castsi512_ps(_mm512_add_epi32(bits, _mm512_set1_epi32(0x3f800000)))};
}
inline __m256 halves_sum(F x) {
  return _mm256_add_ps(_mm512_castps512_ps256(x.v), _mm512_extractf32x8_ps(x.v, 1));
}
inline __m256 halves_max(F x) {
  return _mm256_max_ps(_mm512_castps512_ps256(x.v), _mm512_extractf32x8_ps(x.v, 1));
}

// Eight doubles, two of which hold what one F holds.
struct D {
  __m512d lo, hi;
};
inline D zero_d() {
  return {_mm512_setzero_pd(), _mm512_setzero_pd()};
}
inline D widen(F x) {
  return {_mm512_cvtps_pd(_mm512_castps512_ps256(x.v)), _mm512_cvtps_pd(_mm512_extractf32x8_ps(x.v, 1))};
}
inline D fma(D a, D b, D c) {
  return {_mm512_fmadd_pd(a.lo, b.lo, c.lo), _mm512_fmadd_pd(a.hi, b.hi, c.hi)};
}
inline void store(double* p, D x) {
  _mm512_storeu_pd(p, x.lo);
  _mm512_storeu_pd(p + 8, x.hi);
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
