#pragma once

// The one loop of reduce(), over a description of a processor's vectors. Included only by the reduce_*.cc
// files, each of which is compiled for its own processor: everything here is in an unnamed namespace, so that
// no function built for a newer processor is taken by an older one.
//
// A `Lanes` type describes one element type: Vector, kBytes (of memory per vector), kCount (elements per
// vector), load, store, stream, sum, min, max, divide. Loads and stores take any address; stream takes one
// aligned to kBytes.

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "runtime/collective/reduce_table.h"

namespace paceline::collective {
namespace {

template <typename Lanes, int kOp>
inline typename Lanes::Vector combine(typename Lanes::Vector a, typename Lanes::Vector b) {
  if constexpr (kOp == kSumIndex) return Lanes::sum(a, b);
  if constexpr (kOp == kMinIndex) return Lanes::min(a, b);
  if constexpr (kOp == kMaxIndex) return Lanes::max(a, b);
}

// kUnroll vectors at byte `at` of every array.
template <typename Lanes, int kOp, int kUnroll, bool kStream>
inline void fold_block(const ReduceArrays& arrays, std::size_t at) {
  typename Lanes::Vector sums[kUnroll];
  for (int u = 0; u < kUnroll; ++u) sums[u] = Lanes::load(arrays.inputs[0] + at + u * Lanes::kBytes);
  for (int k = 1; k < arrays.input_count; ++k) {
    const std::byte* input = arrays.inputs[k] + at;
    for (int u = 0; u < kUnroll; ++u) {
      sums[u] = combine<Lanes, kOp>(sums[u], Lanes::load(input + u * Lanes::kBytes));
    }
  }
  if (arrays.divisor > 1) {
    for (int u = 0; u < kUnroll; ++u) sums[u] = Lanes::divide(sums[u], arrays.divisor);
  }
  for (int j = 0; j < arrays.output_count; ++j) {
    std::byte* output = arrays.outputs[j] + at;
    for (int u = 0; u < kUnroll; ++u) {
      if constexpr (kStream) {
        Lanes::stream(output + u * Lanes::kBytes, sums[u]);
      } else {
        Lanes::store(output + u * Lanes::kBytes, sums[u]);
      }
    }
  }
}

// The last elements, fewer than a vector: through zeroed memory of one vector each.
template <typename Lanes, int kOp>
void fold_tail(const ReduceArrays& arrays, std::size_t at, std::size_t bytes) {
  alignas(64) std::byte padded[Lanes::kBytes] = {};
  std::memcpy(padded, arrays.inputs[0] + at, bytes);
  typename Lanes::Vector sum = Lanes::load(padded);
  for (int k = 1; k < arrays.input_count; ++k) {
    std::memcpy(padded, arrays.inputs[k] + at, bytes);
    sum = combine<Lanes, kOp>(sum, Lanes::load(padded));
  }
  if (arrays.divisor > 1) sum = Lanes::divide(sum, arrays.divisor);
  Lanes::store(padded, sum);
  for (int j = 0; j < arrays.output_count; ++j) std::memcpy(arrays.outputs[j] + at, padded, bytes);
}

template <typename Lanes, int kOp, bool kStream>
void fold(const ReduceArrays& arrays) {
  constexpr int kUnroll = 4;
  std::size_t at = 0;
  for (; at + kUnroll * Lanes::kBytes <= arrays.bytes; at += kUnroll * Lanes::kBytes) {
    fold_block<Lanes, kOp, kUnroll, kStream>(arrays, at);
  }
  for (; at + Lanes::kBytes <= arrays.bytes; at += Lanes::kBytes)
    fold_block<Lanes, kOp, 1, kStream>(arrays, at);
  if (at < arrays.bytes) fold_tail<Lanes, kOp>(arrays, at, arrays.bytes - at);
}

template <typename Lanes>
constexpr ReduceRow row_of() {
  return {{{fold<Lanes, kSumIndex, false>, fold<Lanes, kSumIndex, true>},
           {fold<Lanes, kMinIndex, false>, fold<Lanes, kMinIndex, true>},
           {fold<Lanes, kMaxIndex, false>, fold<Lanes, kMaxIndex, true>}}};
}

// The integer lanes' mean, element by element: division has no vector form.
template <typename Element, typename Vector>
inline Vector divide_integers(Vector value, int divisor) {
  Element elements[sizeof(Vector) / sizeof(Element)];
  std::memcpy(elements, &value, sizeof(Vector));
  for (Element& e : elements) e /= static_cast<Element>(divisor);
  std::memcpy(&value, elements, sizeof(Vector));
  return value;
}

}  // namespace
}  // namespace paceline::collective
