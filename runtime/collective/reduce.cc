#include "runtime/collective/reduce.h"

#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#include <emmintrin.h>
#endif

#include "base/check.h"
#include "runtime/collective/reduce_table.h"

namespace paceline::collective {

namespace {

#if defined(__x86_64__)
// Not every compiler's __builtin_cpu_supports knows this one.
bool has_f16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}
#endif

SimdLevel detect() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    return SimdLevel::kAvx512;
  }
  if (__builtin_cpu_supports("avx2") && has_f16c()) return SimdLevel::kAvx2;
#endif
  return SimdLevel::kPortable;
}

const ReduceTable& table_of(SimdLevel level) {
  PL_CHECK(level <= best_simd_level(), "the processor must have the instructions");
#if defined(__x86_64__)
  if (level == SimdLevel::kAvx512) return kReduceAvx512;
  if (level == SimdLevel::kAvx2) return kReduceAvx2;
#endif
  return kReducePortable;
}

int op_index(ReduceOp op) {
  if (op == ReduceOp::kMin) return kMinIndex;
  if (op == ReduceOp::kMax) return kMaxIndex;
  return kSumIndex;
}

constexpr std::size_t kStreamAlignment = 64;

bool aligned(const std::byte* address) {
  return reinterpret_cast<std::uintptr_t>(address) % kStreamAlignment == 0;
}

void store_fence() {
#if defined(__x86_64__)
  _mm_sfence();  // streaming stores are not ordered by the release that follows
#endif
}

}  // namespace

SimdLevel best_simd_level() {
  static const SimdLevel level = detect();
  return level;
}

void reduce(const ReduceCall& call, SimdLevel level) {
  PL_CHECK(!call.outputs.empty() && !call.inputs.empty(), "a reduction has inputs and outputs");
  const std::size_t bytes = call.count * dtype_bytes(call.dtype);
  if (bytes == 0) return;
  if (call.inputs.size() == 1 && call.divisor <= 1) {
    for (std::byte* output : call.outputs) {
      if (output != call.inputs[0]) std::memcpy(output, call.inputs[0], bytes);
    }
    return;
  }
  bool streaming = call.streaming;
  for (const std::byte* output : call.outputs) streaming = streaming && aligned(output);
  const ReduceArrays arrays = {call.outputs.data(),
                               static_cast<int>(call.outputs.size()),
                               call.inputs.data(),
                               static_cast<int>(call.inputs.size()),
                               bytes,
                               call.divisor};
  const ReduceRow& row = table_of(level).rows[static_cast<std::size_t>(call.dtype)];
  row.functions[op_index(call.op)][streaming ? 1 : 0](arrays);
  if (streaming) store_fence();
}

void copy_streaming(std::byte* to, const std::byte* from, std::size_t bytes) {
#if defined(__x86_64__)
  constexpr std::size_t kWorthIt = 64 << 10;
  if (bytes >= kWorthIt) {
    const std::size_t head =
        (kStreamAlignment - reinterpret_cast<std::uintptr_t>(to) % kStreamAlignment) % kStreamAlignment;
    std::memcpy(to, from, head);
    std::size_t at = head;
    for (; at + 64 <= bytes; at += 64) {
      const auto* source = reinterpret_cast<const __m128i*>(from + at);
      auto* target = reinterpret_cast<__m128i*>(to + at);
      const __m128i a = _mm_loadu_si128(source), b = _mm_loadu_si128(source + 1),
                    c = _mm_loadu_si128(source + 2), d = _mm_loadu_si128(source + 3);
      _mm_stream_si128(target, a);
      _mm_stream_si128(target + 1, b);
      _mm_stream_si128(target + 2, c);
      _mm_stream_si128(target + 3, d);
    }
    std::memcpy(to + at, from + at, bytes - at);
    store_fence();
    return;
  }
#endif
  std::memcpy(to, from, bytes);
}

}  // namespace paceline::collective
