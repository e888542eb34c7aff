#pragma once

// The end of a step on the GPU: the gradient's norm, clipping by it, and SGD, Adagrad, Adam or AdamW over the
// flat fp32 weights with a bf16 copy of them, as runtime/optimizer has them on the CPU: from the same
// gradient and factor of clipping the same bits as there, where the processor has fused multiply-add. Nothing
// waits for the host: whether the norm was finite is found in Clipping afterwards, and no weight has changed
// where it was not.
//
// Addresses are of the GPU and 16-byte aligned; work is added to the stream and returns at once. The same
// bits from run to run, on whatever GPU. Thread-safe but for the stream and the scratch memory.

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/cuda/kernels/optimizer_params.h"
#include "runtime/cuda/module.h"

namespace paceline::cuda {

// Elements [begin, end) of the flat vector that decay, or do not.
struct UpdateRange {
  std::uint64_t begin = 0, end = 0;
  bool decay = false;
};

// What blocks are given to update, in order: at most kMostChunk elements of one range each, cut where the
// vector's accesses of 16 bytes begin.
inline constexpr std::uint32_t kMostChunk = 4096;
std::vector<UpdateChunk> update_chunks(std::span<const UpdateRange> ranges);

// Partial sums of the norm: at most 1024.
std::uint32_t square_parts(std::size_t n);

class GpuOptimizer {
 public:
  static absl::StatusOr<GpuOptimizer> load(std::shared_ptr<const Context> context);

  // result: the Euclidean norm of n elements, and the factor that brings it down to clip_norm. `scratch`
  // holds square_parts(n) doubles. No elements: norm 0.
  absl::Status clip(Stream& stream, const float* gradient, std::size_t n, double clip_norm, double* scratch,
                    Clipping* result) const;
  // One step over update.chunks, of which there are `chunks`.
  absl::Status sgd(Stream& stream, const SgdParams& params, std::size_t chunks) const;
  absl::Status adagrad(Stream& stream, const AdagradParams& params, std::size_t chunks) const;
  absl::Status adam(Stream& stream, const AdamParams& params, std::size_t chunks) const;

 private:
  struct Kernels {
    Kernel<SquaresParams> squares;
    Kernel<ClipParams> clip;
    Kernel<SgdParams> sgd;
    Kernel<AdagradParams> adagrad;
    Kernel<AdamParams> adam;
  };
  GpuOptimizer(Module module, const Kernels& kernels) : module_(std::move(module)), kernels_(kernels) {}

  Module module_;
  Kernels kernels_;
};

}  // namespace paceline::cuda
