#pragma once

// The hash of fp32 weights that lie on the GPU (base/vector_hash.h): 64 bits instead of all of them go to the
// host. Thread-safe but for the stream and the memory of the sums.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/cuda/kernels/weights_hash_params.h"
#include "runtime/cuda/module.h"

namespace paceline::cuda {

class WeightsHash {
 public:
  static absl::StatusOr<WeightsHash> load(std::shared_ptr<const Context> context);

  // Sums of n weights: at most 1024.
  static std::uint32_t parts(std::size_t n);
  // Into parts(n) sums. `weights` is 16-byte aligned; work is added to the stream and returns at once.
  absl::Status add(Stream& stream, const float* weights, std::size_t n, std::uint64_t* sums) const;
  // The hash, once the host has the sums.
  static std::uint64_t result(std::span<const std::uint64_t> sums, std::size_t n);

 private:
  WeightsHash(Module module, Kernel<WeightsHashParams> kernel)
      : module_(std::move(module)), kernel_(kernel) {}

  Module module_;
  Kernel<WeightsHashParams> kernel_;
};

}  // namespace paceline::cuda
