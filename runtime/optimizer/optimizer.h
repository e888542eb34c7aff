#pragma once

// Turns the averaged gradient into new weights: SGD, Adam, AdamW and Adagrad over one flat fp32 vector, as
// PyTorch defines them.
//
// With g the gradient (scaled down first when its global norm exceeds clip_norm), w the weights, t the step
// from 1, and the decay 0 for parameters that are not to decay:
//   SGD     g += decay*w;  b = momentum*b + g;  w -= rate * (nesterov ? g + momentum*b : b)
//   Adam    g += decay*w;  m = beta1*m + (1-beta1)*g;  v = beta2*v + (1-beta2)*g*g
//           w -= rate/(1-beta1^t) * m / (sqrt(v)/sqrt(1-beta2^t) + epsilon)
//   AdamW   w *= 1 - rate*decay; then as Adam without its decay          (Loshchilov and Hutter 2019)
//   Adagrad g += decay*w;  s += g*g;  w -= rate * g / (sqrt(s) + epsilon)     (Duchi, Hazan and Singer 2011)
//
// One pass over memory, two when the gradient is clipped. Deterministic: the same machine gives the same bits
// from run to run, and machines of the same SIMD level (cpu/kernels/kernels.h) the same as each other, so
// replicas that hold equal gradients stay equal. Owns its state, not the weights. One thread at a time.
// Allocates only in create().

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/paceline/v1/training.pb.h"
#include "runtime/optimizer/step_terms.h"
#include "runtime/tensor/program.h"

namespace paceline::optimizer {

// One vector of state for checkpoints: "momentum" (SGD with momentum), "exp_avg" and "exp_avg_sq" (Adam,
// AdamW), "sum" (Adagrad). As long as the weights, laid out as they are; zeros before the first step. Write
// into it to restore.
struct StateVector {
  std::string_view name;
  std::span<float> values;
};

struct StepReport {
  std::optional<double> gradient_norm;  // before clipping; only where clip_norm is set
  bool clipped = false;
  float factor = 1;  // what the gradient counted
};

class Optimizer {
 public:
  // InvalidArgument names the field that is out of range: learning_rate > 0; momentum, beta1, beta2 in [0,
  // 1); nesterov needs momentum > 0; epsilon > 0 (Adam, AdamW, Adagrad); weight_decay, clip_norm >= 0; all
  // finite.
  static absl::StatusOr<Optimizer> create(const v1::OptimizerSpec& spec,
                                          const tensor::ParameterLayout& layout);

  // One step with this learning rate (see schedule.h). `gradient` is the mean over the step's samples,
  // reduced over all members. InvalidArgument, with weights and state untouched, when clip_norm is set and
  // the gradient's norm is not finite. `scale`: the gradient is so many times what is given. REQUIRES: both
  // have layout.elements elements.
  absl::StatusOr<StepReport> step(std::span<float> weights, std::span<const float> gradient,
                                  double learning_rate, double scale = 1);

  // A step by parts, for who holds the gradient block by block: begin_step, then step_part for parts that
  // are disjoint and together the whole; the same bits as step(). `weights` and `gradient` are those of
  // elements [begin, begin + their size); the gradient counts times `factor` (clipping is the caller's).
  void begin_step(double learning_rate);
  void step_part(std::size_t begin, std::span<float> weights, std::span<const float> gradient,
                 float factor = 1);

  // Steps done so far: part of the state (Adam's bias correction needs it).
  std::int64_t steps() const { return steps_; }
  void set_steps(std::int64_t steps) { steps_ = steps; }
  std::vector<StateVector> state();

 private:
  Optimizer(const v1::OptimizerSpec& spec, const tensor::ParameterLayout& layout);
  // Of one range's part: elements [begin, begin + count), with the pointers at the first of them.
  struct Part {
    std::size_t begin, count;
    bool decay;
    float* weights;
    const float* gradient;
    float factor;
  };
  void step_sgd(const Part& part);
  void step_adam(const Part& part);
  void step_adagrad(const Part& part);

  v1::OptimizerSpec spec_;
  std::size_t elements_;
  std::vector<DecayRange> ranges_;
  std::int64_t steps_ = 0;
  StepTerms terms_;            // of the step under way
  std::vector<float> first_;   // momentum, exp_avg or sum
  std::vector<float> second_;  // exp_avg_sq
};

}  // namespace paceline::optimizer
