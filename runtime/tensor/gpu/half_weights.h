#pragma once

// A bf16 copy of the flat vector of fp32 weights, for the kernels that read them so. Parameters that are
// asked for are converted one by one, at their first use after the weights changed, or of others; where the
// weights are changed on the GPU by kernels that write the copy in the same pass, nothing is converted. One
// thread at a time.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "runtime/cuda/buffer.h"
#include "runtime/cuda/conversion.h"
#include "runtime/cuda/stream.h"

namespace paceline::tensor::gpu {

class HalfWeights {
 public:
  // The `count` weights at `offset` of the vector, which has `elements` always; the first call takes memory
  // for the copy of all of it. RESOURCE_EXHAUSTED.
  absl::Status want(std::shared_ptr<const cuda::Context> context, std::size_t elements, std::size_t offset,
                    std::size_t count);
  std::size_t bytes() const { return memory_.has_value() ? memory_->bytes() : 0; }
  // Of the copy of the weight at `offset`. REQUIRES: it is wanted.
  void* address(std::size_t offset) const;
  // Adds the conversion to the stream, where the copy is of other weights or of another version of them.
  absl::Status refresh(cuda::Stream& stream, const cuda::Conversion& conversion, std::size_t offset,
                       const float* weights, std::uint64_t version);

  // ---- for kernels that change weights on the GPU ----
  // Where they write the copy of all `elements`. Null: nobody wants one.
  void* whole(std::size_t elements) const;
  // Work was added that makes version `to` of the weights at `weights` out of version `from`, and writes the
  // copy. Not `surely`: it may find on the GPU that it is to leave both as they were.
  void written(const float* weights, std::uint64_t from, std::uint64_t to, bool surely);
  // Other weights are at the addresses that were known.
  void forget();

 private:
  // What its copy was made of; null: of nothing that is known.
  struct Parameter {
    std::size_t count;
    const float* of;  // the parameter's own address
    std::uint64_t version;
  };
  std::optional<cuda::DeviceBuffer> memory_;
  std::size_t elements_ = 0;
  std::map<std::size_t, Parameter> parameters_;  // by offset
};

}  // namespace paceline::tensor::gpu
