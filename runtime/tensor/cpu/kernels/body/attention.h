#pragma once

// Causal attention, one head of one sample at a time, so that everything lies in the first two cache levels.
//
// The head's queries, keys and values are copied into rows of padded length (time and head size up to the
// next 16, padding zero), so that no inner loop has a tail. All products go through `product`, blocks of
// kBlock rows whose accumulators stay in registers. Above the diagonal nothing is computed but what a block
// of 16 holds. A head takes 2 (forward) and 5 (backward) products of about time^2 * head_size multiply-adds.

#include "runtime/tensor/cpu/kernels/body/rows.h"

namespace paceline::tensor::cpu {
namespace {

#if defined(__AVX512F__)
constexpr std::size_t kBlock = 8, kWide = 2;  // rows, and vectors of columns: 16 accumulators of 32 registers
#else
constexpr std::size_t kBlock = 4, kWide = 1;  // 8 of 16
#endif

// A matrix whose element (i, j) is at data[i * row + j * column].
struct Strided {
  const float* data;
  std::size_t row, column;
};

template <std::size_t kVectors>
inline void product_block(Strided a, const float* b, std::size_t b_row, float* c, std::size_t c_row,
                          std::size_t begin, std::size_t end) {
  F total[kBlock][kVectors];
  for (std::size_t i = 0; i < kBlock; ++i) {
    for (std::size_t v = 0; v < kVectors; ++v) total[i][v] = zero();
  }
  for (std::size_t k = begin; k < end; ++k) {
    F right[kVectors];
    for (std::size_t v = 0; v < kVectors; ++v) right[v] = load(b + k * b_row + v * kLanes);
    for (std::size_t i = 0; i < kBlock; ++i) {
      const F left = set(a.data[i * a.row + k * a.column]);
      for (std::size_t v = 0; v < kVectors; ++v) total[i][v] = fma(left, right[v], total[i][v]);
    }
  }
  for (std::size_t i = 0; i < kBlock; ++i) {
    for (std::size_t v = 0; v < kVectors; ++v) store(c + i * c_row + v * kLanes, total[i][v]);
  }
}

// The part of a product that a causal mask leaves.
enum class Part {
  kLowerResult,  // c[i][j] for j <= i
  kLowerLeft,    // a[i][k] is zero for k > i
  kUpperLeft,    // a[i][k] is zero for k < i
};

// c [m, n] = a [m, inner] b [inner, n]; m, n multiples of 16.
template <Part kPart>
inline void product(Strided a, const float* b, std::size_t b_row, float* c, std::size_t c_row, std::size_t m,
                    std::size_t n, std::size_t inner) {
  for (std::size_t i = 0; i < m; i += kBlock) {
    const std::size_t past = i + kBlock;
    const std::size_t columns = kPart == Part::kLowerResult ? (past + kLanes - 1) / kLanes * kLanes : n;
    const std::size_t begin = kPart == Part::kUpperLeft ? i : 0;
    const std::size_t end = kPart == Part::kLowerLeft ? past : inner;
    const Strided rows{a.data + i * a.row, a.row, a.column};
    std::size_t j = 0;
    for (; j + kWide * kLanes <= columns; j += kWide * kLanes) {
      product_block<kWide>(rows, b + j, b_row, c + i * c_row + j, c_row, begin, end);
    }
    if (j < columns) product_block<1>(rows, b + j, b_row, c + i * c_row + j, c_row, begin, end);
  }
}

inline std::size_t padded(std::size_t n) {
  return (n + kLanes - 1) / kLanes * kLanes;
}

// One head's matrices in scratch memory.
struct Head {
  std::size_t time, size;            // as given
  std::size_t long_time, long_size;  // padded
  float* free;                       // scratch that is left

  float* take(std::size_t rows, std::size_t columns) {
    float* taken = free;
    free += rows * columns;
    return taken;
  }
  // [time, size] at `from` with rows of `from_row`, times `factor`, to padded rows.
  float* copy_in(const float* from, std::size_t from_row, float factor) {
    float* to = take(long_time, long_size);
    for (std::size_t t = 0; t < long_time; ++t) {
      for (std::size_t i = 0; i < long_size; i += kLanes) {
        const std::size_t m = i < size ? (size - i < kLanes ? size - i : kLanes) : 0;
        const F x = t < time && m > 0 ? load_some(from + t * from_row + i, m) : zero();
        store(to + t * long_size + i, x * set(factor));
      }
    }
    return to;
  }
  // Rows of padded length to columns: [long_size, long_time].
  float* transpose(const float* from) {
    float* to = take(long_size, long_time);
    for (std::size_t t = 0; t < long_time; ++t) {
      for (std::size_t i = 0; i < long_size; ++i) to[i * long_time + t] = from[t * long_size + i];
    }
    return to;
  }
  void copy_out(const float* from, float* to, std::size_t to_row, float factor) const {
    for (std::size_t t = 0; t < time; ++t) {
      for (std::size_t i = 0; i < size; i += kLanes) {
        const std::size_t m = size - i < kLanes ? size - i : kLanes;
        store_some(to + t * to_row + i, load(from + t * long_size + i) * set(factor), m);
      }
    }
  }
};

inline Head head_of(const AttentionShape& shape, float* scratch) {
  return {shape.time, shape.head_size, padded(shape.time), padded(shape.head_size), scratch};
}

// Row `row` of scores to probabilities, given their maximum and 1 / mass; zero after the diagonal, up to the
// padded end.
inline void probabilities_row(float* scores, std::size_t row, std::size_t end, F highest, F inverse) {
  for (std::size_t j = 0; j < end; j += kLanes) {
    if (j > row) {
      store(scores + j, zero());
      continue;
    }
    const F p = exp(load(scores + j) - highest) * inverse;
    store(scores + j, row - j >= kLanes - 1 ? p : keep(p, row - j + 1, zero()));
  }
}

// Scores to probabilities, keeping for each row what makes them again.
inline void softmax_rows(const Head& head, float* scores, float* stats, std::size_t stats_row) {
  for (std::size_t i = 0; i < head.long_time; ++i) {
    float* row = scores + i * head.long_time;
    const float highest = row_maximum(row, i + 1);
    const F shift = set(highest);
    const float mass = row_sum(i + 1, [&](std::size_t j, std::size_t m) {
      const F e = only(exp(load(row + j) - shift), m);
      store(row + j, e);
      return e;
    });
    const float inverse = 1.0f / mass;
    // What the row sum wrote ends with zeros at the diagonal's vector; the rest of the row is cleared.
    for (std::size_t j = 0; j < head.long_time; j += kLanes) {
      store(row + j, j <= i ? load(row + j) * set(inverse) : zero());
    }
    if (i < head.time) {
      stats[i * stats_row] = highest;
      stats[i * stats_row + 1] = inverse;
    }
  }
}

inline void attention_head(Head head, const float* qkv, std::size_t width, float factor, float* out,
                           float* stats, std::size_t stats_row) {
  const float* q = head.copy_in(qkv, 3 * width, factor);
  const float* k = head.copy_in(qkv + width, 3 * width, 1.0f);
  const float* v = head.copy_in(qkv + 2 * width, 3 * width, 1.0f);
  const float* keys = head.transpose(k);
  const std::size_t t = head.long_time, d = head.long_size;
  float* scores = head.take(t, t);
  float* result = head.take(t, d);
  product<Part::kLowerResult>({q, d, 1}, keys, t, scores, t, t, t, d);
  softmax_rows(head, scores, stats, stats_row);
  product<Part::kLowerLeft>({scores, t, 1}, v, d, result, d, t, d, t);
  head.copy_out(result, out, width, 1.0f);
}

void attention(const AttentionShape& shape, const float* qkv, float* out, float* stats, float* scratch) {
  const std::size_t width = shape.heads * shape.head_size;
  const float factor = 1.0f / __builtin_sqrtf(static_cast<float>(shape.head_size));
  for (std::size_t b = 0; b < shape.batch; ++b) {
    const std::size_t row = b * shape.time;
    for (std::size_t h = 0; h < shape.heads; ++h) {
      attention_head(head_of(shape, scratch), qkv + row * 3 * width + h * shape.head_size, width, factor,
                     out + row * width + h * shape.head_size, stats + (row * shape.heads + h) * 2,
                     shape.heads * 2);
    }
  }
}

// ds[i][j] = p[i][j] * (dp[i][j] - sum over the row of p * dp), in place of dp.
inline void softmax_backward_row(const float* p, float* dp, std::size_t end) {
  F total = zero();
  for (std::size_t j = 0; j < end; j += kLanes) total = fma(load(p + j), load(dp + j), total);
  const F mean = set(sum(total));
  for (std::size_t j = 0; j < end; j += kLanes) store(dp + j, load(p + j) * (load(dp + j) - mean));
}

inline void attention_head_backward(Head head, const float* qkv, std::size_t width, float factor,
                                    const float* stats, std::size_t stats_row, const float* dout,
                                    float* dqkv) {
  const std::size_t t = head.long_time, d = head.long_size;
  const float* q = head.copy_in(qkv, 3 * width, factor);
  const float* k = head.copy_in(qkv + width, 3 * width, 1.0f);
  const float* v = head.copy_in(qkv + 2 * width, 3 * width, 1.0f);
  const float* g = head.copy_in(dout, width, 1.0f);
  const float* keys = head.transpose(k);
  const float* values = head.transpose(v);
  float* p = head.take(t, t);
  float* ds = head.take(t, t);
  float* result = head.take(t, d);
  product<Part::kLowerResult>({q, d, 1}, keys, t, p, t, t, t, d);
  product<Part::kLowerResult>({g, d, 1}, values, t, ds, t, t, t, d);
  for (std::size_t i = 0; i < t; ++i) {
    const std::size_t end = padded(i + 1);
    const bool real = i < head.time;
    probabilities_row(p + i * t, i, t, set(real ? stats[i * stats_row] : 0.0f),
                      set(real ? stats[i * stats_row + 1] : 0.0f));
    softmax_backward_row(p + i * t, ds + i * t, end);
    for (std::size_t j = end; j < t; j += kLanes) store(ds + i * t + j, zero());
  }
  product<Part::kUpperLeft>({p, 1, t}, g, d, result, d, t, d, t);
  head.copy_out(result, dqkv + 2 * width, 3 * width, 1.0f);
  product<Part::kLowerLeft>({ds, t, 1}, k, d, result, d, t, d, t);
  head.copy_out(result, dqkv, 3 * width, factor);
  product<Part::kUpperLeft>({ds, 1, t}, q, d, result, d, t, d, t);  // q holds the factor
  head.copy_out(result, dqkv + width, 3 * width, 1.0f);
}

void attention_backward(const AttentionShape& shape, const float* qkv, const float* stats, const float* dout,
                        float* dqkv, float* scratch) {
  const std::size_t width = shape.heads * shape.head_size;
  const float factor = 1.0f / __builtin_sqrtf(static_cast<float>(shape.head_size));
  for (std::size_t b = 0; b < shape.batch; ++b) {
    const std::size_t row = b * shape.time;
    for (std::size_t h = 0; h < shape.heads; ++h) {
      const std::size_t column = h * shape.head_size;
      attention_head_backward(head_of(shape, scratch), qkv + row * 3 * width + column, width, factor,
                              stats + (row * shape.heads + h) * 2, shape.heads * 2,
                              dout + row * width + column, dqkv + row * 3 * width + column);
    }
  }
}

}  // namespace
}  // namespace paceline::tensor::cpu
