#pragma once

// bf16 copies of fp32 weights, for the kernels that read them so: one for each parameter that is asked for,
// made anew at its first use after the weights changed, or of others. One thread at a time.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "absl/status/status.h"
#include "runtime/cuda/buffer.h"
#include "runtime/cuda/conversion.h"
#include "runtime/cuda/stream.h"

namespace paceline::tensor::gpu {

class HalfWeights {
 public:
  // Memory for the copy of `count` weights at `offset` of the flat vector. RESOURCE_EXHAUSTED.
  absl::Status want(std::shared_ptr<const cuda::Context> context, std::size_t offset, std::size_t count);
  std::size_t bytes() const;  // of all copies
  // Its address. REQUIRES: it is wanted.
  void* address(std::size_t offset) const;
  // Adds the conversion to the stream, where the copy is of other weights or of another version of them.
  absl::Status refresh(cuda::Stream& stream, const cuda::Conversion& conversion, std::size_t offset,
                       const float* weights, std::uint64_t version);

 private:
  struct Copy {
    cuda::DeviceBuffer memory;
    std::size_t count;
    const float* of;
    std::uint64_t version;
  };
  std::map<std::size_t, Copy> copies_;  // by offset
};

}  // namespace paceline::tensor::gpu
