#pragma once

// Kernels: an image that is loaded into a context, and what can be launched of it.
//
// A kernel takes one struct (kernels/portable.h). Module::kernel checks that the image's kernel takes one of
// that size, and a Kernel<Params> launches with a Params alone: image and host can't disagree unseen.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/status.h"
#include "runtime/cuda/launch_shape.h"
#include "runtime/cuda/stream.h"

namespace paceline::cuda {

// A copyable handle. Its module outlives it.
template <typename Params>
class Kernel {
 public:
  // In the stream's order. An error is of the launch itself, or of earlier work; what goes wrong while it
  // runs comes later.
  absl::Status launch(Stream& stream, const LaunchShape& shape, const Params& params) const;

 private:
  friend class Module;
  Kernel(CUfunction function, const char* name, std::uint32_t shared_bytes)
      : function_(function), name_(name), shared_bytes_(shared_bytes) {}

  CUfunction function_;
  const char* name_;
  std::uint32_t shared_bytes_;
};

class Module {
 public:
  // `image` is one of kernels/images.h. INTERNAL, with the GPU's name, where it can't be used there.
  static absl::StatusOr<Module> load(std::shared_ptr<const Context> context,
                                     std::span<const std::byte> image);
  ~Module();
  Module(Module&& other) noexcept
      : context_(std::move(other.context_)), handle_(std::exchange(other.handle_, nullptr)) {}
  Module& operator=(Module&&) = delete;

  // `name` lives as long as the kernel. Each of its blocks gets `shared_bytes` of shared memory
  // (kernels/tensor_core.h). INTERNAL where the image lacks it, it takes something else, or the GPU's blocks
  // have less than that.
  template <typename Params>
  absl::StatusOr<Kernel<Params>> kernel(const char* name, std::uint32_t shared_bytes = 0) const {
    static_assert(std::is_trivially_copyable_v<Params>);
    PL_ASSIGN_OR_RETURN(const CUfunction function, find(name, sizeof(Params), shared_bytes));
    return Kernel<Params>(function, name, shared_bytes);
  }

 private:
  Module(std::shared_ptr<const Context> context, CUmodule handle)
      : context_(std::move(context)), handle_(handle) {}
  absl::StatusOr<CUfunction> find(const char* name, std::size_t parameter_bytes,
                                  std::uint32_t shared_bytes) const;

  std::shared_ptr<const Context> context_;
  CUmodule handle_;
};

namespace module_internal {
absl::Status launch(CUfunction function, const char* name, Stream& stream, const LaunchShape& shape,
                    std::uint32_t shared_bytes, const void* params);
}  // namespace module_internal

template <typename Params>
absl::Status Kernel<Params>::launch(Stream& stream, const LaunchShape& shape, const Params& params) const {
  return module_internal::launch(function_, name_, stream, shape, shared_bytes_, &params);
}

}  // namespace paceline::cuda
