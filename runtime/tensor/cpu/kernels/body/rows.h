#pragma once

// Rows picked by an index: cross-entropy's labels, embeddings' tokens.

#include "runtime/tensor/cpu/kernels/body/layer_norm.h"
#include "runtime/tensor/cpu/kernels/kernels.h"

namespace paceline::tensor::cpu {
namespace {

inline float row_maximum(const float* row, std::size_t n) {
  const F lowest = set(-__builtin_inff());
  F most = lowest;
  each_vector(
      n, [&](std::size_t i) { most = max(most, load(row + i)); },
      [&](std::size_t i, std::size_t m) { most = max(most, keep(load(row + i, m), m, lowest)); });
  return maximum(most);
}

inline bool first_highest(const float* row, std::size_t label, float highest) {
  if (!(row[label] == highest)) return false;
  for (std::size_t i = 0; i < label; ++i) {
    if (row[i] == highest) return false;
  }
  return true;
}

// Adds one row to `total`; with kGradient, replaces the row by its gradient.
template <bool kGradient>
inline void cross_entropy_row(float* row, std::size_t label, std::size_t classes, LossSum& total) {
  const float highest = row_maximum(row, classes);
  const F shift = set(highest);
  const float score = row[label];
  const bool hit = first_highest(row, label, highest);
  const float mass = row_sum(classes, [&](std::size_t i, std::size_t m) {
    const F e = only(exp(load_some(row + i, m) - shift), m);
    if constexpr (kGradient) store_some(row + i, e, m);
    return e;
  });
  total.loss += __builtin_log(static_cast<double>(mass)) + (static_cast<double>(highest) - score);
  total.correct += hit && mass == mass;
  if constexpr (kGradient) {
    scale(row, 1.0f / mass, classes);
    row[label] -= 1.0f;
  }
}

LossSum cross_entropy(const float* logits, const std::int32_t* labels, std::size_t rows,
                      std::size_t classes) {
  LossSum total;
  for (std::size_t r = 0; r < rows; ++r) {
    cross_entropy_row<false>(const_cast<float*>(logits) + r * classes, static_cast<std::size_t>(labels[r]),
                             classes, total);
  }
  return total;
}

LossSum cross_entropy_gradient(float* logits, const std::int32_t* labels, std::size_t rows,
                               std::size_t classes) {
  LossSum total;
  for (std::size_t r = 0; r < rows; ++r) {
    cross_entropy_row<true>(logits + r * classes, static_cast<std::size_t>(labels[r]), classes, total);
  }
  return total;
}

void embed(const std::int32_t* tokens, const float* table, const float* positions, float* y, std::size_t rows,
           std::size_t time, std::size_t width) {
  for (std::size_t r = 0; r < rows; ++r) {
    const float* token_row = table + static_cast<std::size_t>(tokens[r]) * width;
    if (positions != nullptr) {
      add(token_row, positions + r % time * width, y + r * width, width);
    } else {
      __builtin_memcpy(y + r * width, token_row, width * sizeof(float));
    }
  }
}

void embed_backward(const std::int32_t* tokens, const float* dy, float* table_gradient,
                    float* position_gradient, std::size_t rows, std::size_t time, std::size_t width) {
  for (std::size_t r = 0; r < rows; ++r) {
    float* token_row = table_gradient + static_cast<std::size_t>(tokens[r]) * width;
    add(token_row, dy + r * width, token_row, width);
    if (position_gradient == nullptr) continue;
    float* position_row = position_gradient + r % time * width;
    add(position_row, dy + r * width, position_row, width);
  }
}

}  // namespace
}  // namespace paceline::tensor::cpu
