#pragma once

// The numeric loops of the CPU backend: plain functions over pointers, in one table for each SIMD level.
//
// The processor is asked once; `kernels()` is the best table that it can run, `kernels_for` a given one
// (tests run every level). Every function is single-threaded, allocates nothing, and may run on any number of
// threads over different memory. Pointers need no alignment. Outputs do not overlap inputs unless a line says
// "in place". Shapes are row-major.
//
// Determinism: a function gives the same bits from run to run. kAvx2 and kAvx512 give the same bits as each
// other: both work on 16 lanes with fused multiply-add and fold them in one order. kPortable rounds after
// every multiplication, so it differs from them in the last bits; only squared_norm, the copies and the
// conversions are equal at all three. NaN: an input NaN reaches every output that depends on it.

#include <cstddef>
#include <cstdint>

#include "base/simd_level.h"

namespace paceline::tensor::cpu {

struct SgdStep {
  float clip = 1;  // the gradient is multiplied by this first
  float learning_rate = 0;
  float momentum = 0;
  float weight_decay = 0;  // added to the gradient
  bool nesterov = false;
};

struct AdamStep {
  float clip = 1;
  float step_size = 0;  // rate / (1 - beta1^t)
  float beta1 = 0;
  float one_minus_beta1 = 1;  // rounded from double: 1 - float(beta) would lose digits
  float beta2 = 0;
  float one_minus_beta2 = 1;
  float root_correction = 1;  // 1 / sqrt(1 - beta2^t)
  float epsilon = 0;
  float weight_decay = 0;  // added to the gradient (Adam)
  float shrink = 1;        // weights are multiplied by this first (AdamW: 1 - rate * decay)
};

struct AdagradStep {
  float clip = 1;
  float learning_rate = 0;
  float epsilon = 0;
  float weight_decay = 0;  // added to the gradient
};

struct FtrlStep {
  float clip = 1;
  float alpha = 1;
  float beta = 1;
  float l1 = 0;
  float l2 = 0;
};

// What a classifier's last step gives, summed over rows.
struct LossSum {
  double loss = 0;  // -log of the label's probability; NaN where a row's scores are
  std::int64_t correct =
      0;  // rows whose highest score (the first of equals) is the label's; never a row with NaN
};

// Causal self-attention of `batch` samples of `time` tokens. With width = heads * head_size:
// qkv is [batch*time, 3*width], a row holding the queries of all heads, then the keys, then the values.
struct AttentionShape {
  std::size_t batch = 0;
  std::size_t time = 0;
  std::size_t heads = 0;
  std::size_t head_size = 0;
};
// Floats of scratch memory that attention and attention_backward need: about 2 time^2 + 7 time * head_size,
// for one head at a time.
std::size_t attention_scratch(const AttentionShape& shape);

struct Kernels {
  SimdLevel level;

  // ---- vectors ----
  double (*squared_norm)(const float* x,
                         std::size_t n);  // in double, 32 partial sums; the same bits at every level
  void (*scale)(float* x, float factor, std::size_t n);                    // in place
  void (*add)(const float* a, const float* b, float* sum, std::size_t n);  // sum may be a or b
  void (*to_bf16)(const float* x, std::uint16_t* y,
                  std::size_t n);  // to nearest, ties to even; NaN stays NaN
  void (*from_bf16)(const std::uint16_t* x, float* y, std::size_t n);

  // ---- rows of a matrix [rows, columns] ----
  void (*add_bias)(float* x, const float* bias, std::size_t rows, std::size_t columns);  // in place
  // sums[c] (+)= sum over rows of x[r][c], in the order of the rows.
  void (*column_sums)(const float* x, float* sums, bool accumulate, std::size_t rows, std::size_t columns);

  // ---- activations; y may be x, dx may be dy ----
  // Absolute errors against double: 2e-7 * max(1, |x|) for gelu, 3e-7 for its derivative, 2e-7 for tanh.
  void (*relu)(const float* x, float* y, std::size_t n);
  void (*relu_backward)(const float* y, const float* dy, float* dx, std::size_t n);  // from the output
  void (*tanh)(const float* x, float* y, std::size_t n);
  void (*tanh_backward)(const float* y, const float* dy, float* dx, std::size_t n);  // from the output
  void (*gelu)(const float* x, float* y, std::size_t n);                             // GPT-2's tanh form
  void (*gelu_backward)(const float* x, const float* dy, float* dx, std::size_t n);  // from the input

  // ---- layer norm over the columns (Ba, Kiros, Hinton 2016) ----
  // Saves each row's mean and 1 / sqrt(variance + epsilon) for the backward pass. With `residual`, the rows
  // are x + residual, written to `sum`; both null: the rows are x. `sum` may be x or residual.
  void (*layer_norm)(const float* x, const float* residual, float* sum, const float* gain, const float* bias,
                     float* y, float* means, float* inverses, float epsilon, std::size_t rows,
                     std::size_t columns);
  // dx = gradient through the norm, plus `through` (the gradient that passes by it on the residual path)
  // unless null; dx may be `through` or dy. gain_gradient and bias_gradient are added to.
  void (*layer_norm_backward)(const float* rows_in, const float* gain, const float* means,
                              const float* inverses, const float* dy, const float* through, float* dx,
                              float* gain_gradient, float* bias_gradient, std::size_t rows,
                              std::size_t columns);

  // ---- softmax and cross-entropy over [rows, classes]; REQUIRES 0 <= label < classes ----
  LossSum (*cross_entropy)(const float* logits, const std::int32_t* labels, std::size_t rows,
                           std::size_t classes);
  // The same, and replaces each row of logits by its gradient of the loss sum: probability - (class ==
  // label).
  LossSum (*cross_entropy_gradient)(float* logits, const std::int32_t* labels, std::size_t rows,
                                    std::size_t classes);

  // ---- embeddings; REQUIRES 0 <= token < rows of the table ----
  // y[r] = table[tokens[r]] + positions[r % time]; positions may be null
  void (*embed)(const std::int32_t* tokens, const float* table, const float* positions, float* y,
                std::size_t rows, std::size_t time, std::size_t width);
  // Adds each row of dy to its rows of both gradients (position_gradient may be null), in the order of the
  // rows.
  void (*embed_backward)(const std::int32_t* tokens, const float* dy, float* table_gradient,
                         float* position_gradient, std::size_t rows, std::size_t time, std::size_t width);

  // ---- causal self-attention: softmax(q k^T / sqrt(head_size)) v, each token seeing itself and those before
  // it ---- out is [batch*time, width]. stats, 2 floats for each row and head, is what the backward pass
  // makes the probabilities from again (Dao et al. 2022, FlashAttention): memory is linear in time.
  void (*attention)(const AttentionShape& shape, const float* qkv, float* out, float* stats, float* scratch);
  void (*attention_backward)(const AttentionShape& shape, const float* qkv, const float* stats,
                             const float* dout, float* dqkv, float* scratch);

  // The same of one position: out is [width], qkv [3 * width], and keys and values are those of a cache
  // [seen, 2 * width], a row holding the keys of all heads, then the values. scratch: `seen` floats.
  // REQUIRES: seen >= 1.
  void (*cached_attention)(std::size_t heads, std::size_t head_size, std::size_t seen, const float* qkv,
                           const float* cache, float* out, float* scratch);

  // ---- optimizers (runtime/optimizer/optimizer.h has the formulas) ----
  void (*sgd)(const SgdStep& step, float* weights, float* momentum, const float* gradient,
              std::size_t n);  // momentum may be null
  void (*adam)(const AdamStep& step, float* weights, float* first, float* second, const float* gradient,
               std::size_t n);
  void (*adagrad)(const AdagradStep& step, float* weights, float* sum, const float* gradient, std::size_t n);
  // FTRL-proximal (McMahan et al. 2013), element by element, with q the `squares` so far:
  //   z += g - (sqrt(q + g*g) - sqrt(q)) / alpha * w;  q += g*g
  //   w = |z| <= l1 ? 0 : (sign(z)*l1 - z) / ((beta + sqrt(q)) / alpha + l2)
  void (*ftrl)(const FtrlStep& step, float* weights, float* z, float* squares, const float* gradient,
               std::size_t n);
  // y = g + factor * g * g * (w - w_read): a late gradient brought to where the weights are now (Zheng et al.
  // 2017). y may be g.
  void (*compensate)(float factor, const float* g, const float* w, const float* w_read, float* y,
                     std::size_t n);
};

// The best level of this processor. Thread-safe.
const Kernels& kernels();
// Null where this processor (or this build) lacks the level.
const Kernels* kernels_for(SimdLevel level);

}  // namespace paceline::tensor::cpu
