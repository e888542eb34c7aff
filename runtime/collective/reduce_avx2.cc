// Compiled for AVX2 and F16C. Additions are written in assembler: their first operand decides which NaN
// survives, and the language would let a compiler swap the two.

#include <immintrin.h>

#include "runtime/collective/reduce_loops.h"

namespace paceline::collective {
namespace {

struct Float8 {
  using Vector = __m256;
  static Vector sum(Vector a, Vector b) {
    Vector result;
    asm("vaddps %2, %1, %0" : "=x"(result) : "x"(a), "x"(b));
    return result;
  }
  // minps gives its second operand when both are equal or one is NaN: that is `a` here, unless only b is NaN.
  static Vector prefer_nan(Vector chosen, Vector a, Vector b) {
    const Vector only_b = _mm256_and_ps(_mm256_cmp_ps(b, b, _CMP_UNORD_Q), _mm256_cmp_ps(a, a, _CMP_ORD_Q));
    return _mm256_blendv_ps(chosen, b, only_b);
  }
  static Vector min(Vector a, Vector b) { return prefer_nan(_mm256_min_ps(b, a), a, b); }
  static Vector max(Vector a, Vector b) { return prefer_nan(_mm256_max_ps(b, a), a, b); }
  static Vector divide(Vector a, int divisor) {
    return _mm256_div_ps(a, _mm256_set1_ps(static_cast<float>(divisor)));
  }
};

struct F32 : Float8 {
  static constexpr std::size_t kBytes = 32;
  static Vector load(const std::byte* from) { return _mm256_loadu_ps(reinterpret_cast<const float*>(from)); }
  static void store(std::byte* to, Vector v) { _mm256_storeu_ps(reinterpret_cast<float*>(to), v); }
  static void stream(std::byte* to, Vector v) { _mm256_stream_ps(reinterpret_cast<float*>(to), v); }
};

struct F16 : Float8 {
  static constexpr std::size_t kBytes = 16;
  static Vector load(const std::byte* from) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  }
  static void store(std::byte* to, Vector v) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
  }
  static void stream(std::byte* to, Vector v) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(to), _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
  }
};

struct BF16 : Float8 {
  static constexpr std::size_t kBytes = 16;
  static Vector load(const std::byte* from) {
    const __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
  }
  static __m128i narrow(Vector v) {
    const __m256i bits = _mm256_castps_si256(v);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
    const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    const __m256i upper = _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, nan), 16);
    return _mm_packus_epi32(_mm256_castsi256_si128(upper), _mm256_extracti128_si256(upper, 1));
  }
  static void store(std::byte* to, Vector v) { _mm_storeu_si128(reinterpret_cast<__m128i*>(to), narrow(v)); }
  static void stream(std::byte* to, Vector v) { _mm_stream_si128(reinterpret_cast<__m128i*>(to), narrow(v)); }
};

struct F64 {
  using Vector = __m256d;
  static constexpr std::size_t kBytes = 32;
  static Vector load(const std::byte* from) { return _mm256_loadu_pd(reinterpret_cast<const double*>(from)); }
  static void store(std::byte* to, Vector v) { _mm256_storeu_pd(reinterpret_cast<double*>(to), v); }
  static void stream(std::byte* to, Vector v) { _mm256_stream_pd(reinterpret_cast<double*>(to), v); }
  static Vector sum(Vector a, Vector b) {
    Vector result;
    asm("vaddpd %2, %1, %0" : "=x"(result) : "x"(a), "x"(b));
    return result;
  }
  static Vector prefer_nan(Vector chosen, Vector a, Vector b) {
    const Vector only_b = _mm256_and_pd(_mm256_cmp_pd(b, b, _CMP_UNORD_Q), _mm256_cmp_pd(a, a, _CMP_ORD_Q));
    return _mm256_blendv_pd(chosen, b, only_b);
  }
  static Vector min(Vector a, Vector b) { return prefer_nan(_mm256_min_pd(b, a), a, b); }
  static Vector max(Vector a, Vector b) { return prefer_nan(_mm256_max_pd(b, a), a, b); }
  static Vector divide(Vector a, int divisor) { return _mm256_div_pd(a, _mm256_set1_pd(divisor)); }
};

struct Integers {
  using Vector = __m256i;
  static constexpr std::size_t kBytes = 32;
  static Vector load(const std::byte* from) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  }
  static void store(std::byte* to, Vector v) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), v); }
  static void stream(std::byte* to, Vector v) { _mm256_stream_si256(reinterpret_cast<__m256i*>(to), v); }
};

struct I32 : Integers {
  static Vector sum(Vector a, Vector b) { return _mm256_add_epi32(a, b); }
  static Vector min(Vector a, Vector b) { return _mm256_min_epi32(a, b); }
  static Vector max(Vector a, Vector b) { return _mm256_max_epi32(a, b); }
  static Vector divide(Vector a, int divisor) { return divide_integers<std::int32_t>(a, divisor); }
};

struct I64 : Integers {
  static Vector sum(Vector a, Vector b) { return _mm256_add_epi64(a, b); }
  static Vector min(Vector a, Vector b) { return _mm256_blendv_epi8(a, b, _mm256_cmpgt_epi64(a, b)); }
  static Vector max(Vector a, Vector b) { return _mm256_blendv_epi8(a, b, _mm256_cmpgt_epi64(b, a)); }
  static Vector divide(Vector a, int divisor) { return divide_integers<std::int64_t>(a, divisor); }
};

}  // namespace

const ReduceTable kReduceAvx2 = {
    {row_of<F32>(), row_of<F64>(), row_of<BF16>(), row_of<F16>(), row_of<I32>(), row_of<I64>()}};

}  // namespace paceline::collective
