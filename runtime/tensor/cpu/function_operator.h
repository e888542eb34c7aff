#pragma once

// An operator that is one function.

#include <functional>
#include <utility>

#include "runtime/tensor/device.h"

namespace paceline::tensor::cpu {

class FunctionOperator final : public Operator {
 public:
  using Body = std::function<void(const Addresses&, const RunContext&)>;
  FunctionOperator(Needs needs, Body body) : needs_(needs), body_(std::move(body)) {}
  Needs needs() const override { return needs_; }
  void bind(const Addresses& addresses) override { addresses_ = addresses; }
  absl::Status run(const RunContext& context) override {
    body_(addresses_, context);
    return absl::OkStatus();
  }

 private:
  Needs needs_;
  Body body_;
  Addresses addresses_;
};

// Operand `number` as an array.
inline const float* in(const Operator::Addresses& addresses, std::size_t number) {
  return static_cast<const float*>(addresses.inputs[number]);
}
inline float* out(const Operator::Addresses& addresses, std::size_t number) {
  return static_cast<float*>(addresses.outputs[number]);
}

}  // namespace paceline::tensor::cpu
