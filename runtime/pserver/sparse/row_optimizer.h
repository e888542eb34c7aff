#pragma once

// One gradient into one row: the weights and the state that lies behind them, each `dim` floats, in the order
// of state_names(). The arithmetic is that of the dense optimisers' kernels (tensor/cpu/kernels). One thread
// at a time.

#include <cstdint>
#include <vector>

#include "runtime/pserver/sparse/table_spec.h"
#include "runtime/tensor/cpu/kernels/kernels.h"

namespace paceline::pserver::sparse {

class RowStepper {
 public:
  // REQUIRES: check() accepts the table's spec.
  RowStepper(const RowOptimizer& optimizer, std::size_t dim);

  std::size_t states() const { return states_; }
  std::size_t row_floats() const { return (1 + states_) * dim_; }

  // What the state of a new row is: zeros; with FTRL z is what makes the initial weights.
  void start(float* row) const;
  // Of the steps that follow: gradients count times `factor`, the learning rate times `fraction`; FTRL's
  // alpha stays, its rates fall by themselves.
  void begin(float factor, double fraction);
  // `steps`: how many steps the row will have had with this one, at least 1.
  void step(float* row, const float* gradient, std::uint32_t steps);

 private:
  struct Correction {  // Adam's, of a number of steps
    float step_size, root;
  };
  Correction correction(std::uint32_t steps) const;

  const RowOptimizer rule_;
  const std::size_t dim_;
  const std::size_t states_;
  const tensor::cpu::Kernels& kernels_;
  tensor::cpu::SgdStep sgd_;
  tensor::cpu::AdagradStep adagrad_;
  tensor::cpu::AdamStep adam_;
  tensor::cpu::FtrlStep ftrl_;
  float rate_ = 0;
  std::vector<Correction> corrections_;  // of the first steps, for a rate of 1
};

}  // namespace paceline::pserver::sparse
