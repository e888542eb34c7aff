#pragma once

// Makes the GPU's operators and keeps the types of a schedule's tensors. Contract: device.h. All tensors are
// row-major.
//
// Types: what is in the arena and in the key/value cache is of the program's type (fp32, or bf16), but for
// statistics, which are fp32; all else is fp32. An operator that takes another type than its operand has gets
// a converted copy.

#include <memory>
#include <vector>

#include "base/dtype.h"
#include "runtime/cuda/cublaslt.h"
#include "runtime/tensor/device.h"
#include "runtime/tensor/gpu/gpu_operator.h"
#include "runtime/tensor/gpu/kernels.h"

namespace paceline::tensor::gpu {

class GpuLowering final : public Lowering {
 public:
  GpuLowering(const Schedule& schedule, Precision precision, std::shared_ptr<const cuda::CublasLt> products,
              const Kernels& kernels, GpuQueue& queue);
  absl::StatusOr<std::unique_ptr<Operator>> lower(const Operation& operation) override;
  std::size_t bytes(TensorId tensor) const override;

  // ---- for the operators' makers ----
  const std::shared_ptr<const cuda::Context>& context() const { return products_->context(); }
  const std::shared_ptr<const cuda::CublasLt>& products() const { return products_; }
  const Kernels& kernels() const { return kernels_; }
  const Tensor& tensor(TensorId id) const { return schedule_.tensors[static_cast<std::size_t>(id)]; }
  std::size_t elements(TensorId id) const { return static_cast<std::size_t>(element_count(tensor(id).dims)); }
  // Of activations and their gradients.
  DType type() const { return type_; }
  DType type(TensorId id) const { return types_[static_cast<std::size_t>(id)]; }
  // Of an arena tensor that is fp32 whatever the program's type is.
  void set_statistics(TensorId id) { types_[static_cast<std::size_t>(id)] = DType::kF32; }

 private:
  absl::StatusOr<Lowered> make(const Operation& operation);
  absl::StatusOr<std::unique_ptr<Operator>> typed(Lowered made, const Operation& operation);

  const Schedule& schedule_;
  const DType type_;
  const std::shared_ptr<const cuda::CublasLt> products_;
  const Kernels& kernels_;
  GpuQueue& queue_;
  std::vector<DType> types_;  // by tensor; of those that are floats
};

}  // namespace paceline::tensor::gpu
