// Compiled for AVX-512 F, BW, DQ and VL; see reduce_avx2.cc. bf16 is rounded with integers: vcvtneps2bf16
// takes subnormals for zero.

#include <immintrin.h>

#include "runtime/collective/reduce_loops.h"

namespace paceline::collective {
namespace {

struct Float16Lanes {
  using Vector = __m512;
  static Vector sum(Vector a, Vector b) {
    Vector result;
    asm("vaddps %2, %1, %0" : "=v"(result) : "v"(a), "v"(b));
    return result;
  }
  static Vector prefer_nan(Vector chosen, Vector a, Vector b) {
    const __mmask16 b_nan = _mm512_cmp_ps_mask(b, b, _CMP_UNORD_Q);
    return _mm512_mask_mov_ps(chosen, _mm512_mask_cmp_ps_mask(b_nan, a, a, _CMP_ORD_Q), b);
  }
  static Vector min(Vector a, Vector b) { return prefer_nan(_mm512_min_ps(b, a), a, b); }
  static Vector max(Vector a, Vector b) { return prefer_nan(_mm512_max_ps(b, a), a, b); }
  static Vector divide(Vector a, int divisor) {
    return _mm512_div_ps(a, _mm512_set1_ps(static_cast<float>(divisor)));
  }
};

struct F32 : Float16Lanes {
  static constexpr std::size_t kBytes = 64;
  static Vector load(const std::byte* from) { return _mm512_loadu_ps(from); }
  static void store(std::byte* to, Vector v) { _mm512_storeu_ps(to, v); }
  static void stream(std::byte* to, Vector v) { _mm512_stream_ps(reinterpret_cast<float*>(to), v); }
};

struct HalfBytes : Float16Lanes {
  static constexpr std::size_t kBytes = 32;
  static __m256i bits(const std::byte* from) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  }
  static void put(std::byte* to, __m256i v) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), v); }
  static void put_streaming(std::byte* to, __m256i v) {
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to), v);
  }
};

struct F16 : HalfBytes {
  static __m256i narrow(Vector v) {
    return _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  static Vector load(const std::byte* from) { return _mm512_cvtph_ps(bits(from)); }
  static void store(std::byte* to, Vector v) { put(to, narrow(v)); }
  static void stream(std::byte* to, Vector v) { put_streaming(to, narrow(v)); }
};

struct BF16 : HalfBytes {
  static __m256i narrow(Vector v) {
    const __m512i bits = _mm512_castps_si512(v);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i rounded = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
    const __m512i quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x400000));
    const __m512i kept = _mm512_mask_mov_epi32(rounded, _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q), quiet);
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(kept, 16));
  }
  static Vector load(const std::byte* from) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits(from)), 16));
  }
  static void store(std::byte* to, Vector v) { put(to, narrow(v)); }
  static void stream(std::byte* to, Vector v) { put_streaming(to, narrow(v)); }
};

struct F64 {
  using Vector = __m512d;
  static constexpr std::size_t kBytes = 64;
  static Vector load(const std::byte* from) { return _mm512_loadu_pd(from); }
  static void store(std::byte* to, Vector v) { _mm512_storeu_pd(to, v); }
  static void stream(std::byte* to, Vector v) { _mm512_stream_pd(reinterpret_cast<double*>(to), v); }
  static Vector sum(Vector a, Vector b) {
    Vector result;
    asm("vaddpd %2, %1, %0" : "=v"(result) : "v"(a), "v"(b));
    return result;
  }
  static Vector prefer_nan(Vector chosen, Vector a, Vector b) {
    const __mmask8 b_nan = _mm512_cmp_pd_mask(b, b, _CMP_UNORD_Q);
    return _mm512_mask_mov_pd(chosen, _mm512_mask_cmp_pd_mask(b_nan, a, a, _CMP_ORD_Q), b);
  }
  static Vector min(Vector a, Vector b) { return prefer_nan(_mm512_min_pd(b, a), a, b); }
  static Vector max(Vector a, Vector b) { return prefer_nan(_mm512_max_pd(b, a), a, b); }
  static Vector divide(Vector a, int divisor) { return _mm512_div_pd(a, _mm512_set1_pd(divisor)); }
};

struct Integers {
  using Vector = __m512i;
  static constexpr std::size_t kBytes = 64;
  static Vector load(const std::byte* from) { return _mm512_loadu_si512(from); }
  static void store(std::byte* to, Vector v) { _mm512_storeu_si512(to, v); }
  static void stream(std::byte* to, Vector v) { _mm512_stream_si512(reinterpret_cast<__m512i*>(to), v); }
};

struct I32 : Integers {
  static Vector sum(Vector a, Vector b) { return _mm512_add_epi32(a, b); }
  static Vector min(Vector a, Vector b) { return _mm512_min_epi32(a, b); }
  static Vector max(Vector a, Vector b) { return _mm512_max_epi32(a, b); }
  static Vector divide(Vector a, int divisor) { return divide_integers<std::int32_t>(a, divisor); }
};

struct I64 : Integers {
  static Vector sum(Vector a, Vector b) { return _mm512_add_epi64(a, b); }
  static Vector min(Vector a, Vector b) { return _mm512_min_epi64(a, b); }
  static Vector max(Vector a, Vector b) { return _mm512_max_epi64(a, b); }
  static Vector divide(Vector a, int divisor) { return divide_integers<std::int64_t>(a, divisor); }
};

}  // namespace

const ReduceTable kReduceAvx512 = {
    {row_of<F32>(), row_of<F64>(), row_of<BF16>(), row_of<F16>(), row_of<I32>(), row_of<I64>()}};

}  // namespace paceline::collective
