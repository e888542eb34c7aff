#include "runtime/tensor/gpu/gpu_device.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/guarded.h"
#include "base/status.h"
#include "runtime/cuda/buffer.h"
#include "runtime/tensor/gpu/gpu_lowering.h"
#include "runtime/tensor/gpu/gpu_queue.h"

namespace paceline::tensor {

namespace {

class GpuMemory final : public DeviceMemory {
 public:
  explicit GpuMemory(cuda::DeviceBuffer buffer) : buffer_(std::move(buffer)) {}
  std::byte* data() const override { return buffer_.as<std::byte>(); }

 private:
  cuda::DeviceBuffer buffer_;
};

class StagingMemory final : public DeviceMemory {
 public:
  explicit StagingMemory(cuda::PinnedBuffer buffer) : buffer_(std::move(buffer)) {}
  std::byte* data() const override { return buffer_.bytes().data(); }

 private:
  cuda::PinnedBuffer buffer_;
};

class GpuDevice final : public Device {
 public:
  GpuDevice(std::shared_ptr<const cuda::CublasLt> products, std::unique_ptr<const gpu::Kernels> kernels,
            cuda::Stream stream, const GpuOptions& options)
      : context_(products->context()),
        products_(std::move(products)),
        kernels_(std::move(kernels)),
        stream_(std::move(stream)),
        graphs_{options.graphs, options.no_graphs},
        not_pinned_(options.not_pinned) {}

  absl::StatusOr<std::optional<MemoryRoom>> room() override {
    PL_ASSIGN_OR_RETURN(const cuda::Context::MemoryInfo memory, context_->memory());
    return MemoryRoom{memory.free_bytes, memory.total_bytes};
  }
  absl::StatusOr<std::unique_ptr<DeviceMemory>> allocate(std::size_t bytes) override {
    PL_ASSIGN_OR_RETURN(cuda::DeviceBuffer buffer, cuda::DeviceBuffer::create(context_, bytes));
    PL_RETURN_IF_ERROR(clear(buffer));
    return std::make_unique<GpuMemory>(std::move(buffer));
  }
  absl::StatusOr<std::unique_ptr<DeviceMemory>> allocate_staging(std::size_t bytes) override {
    PL_ASSIGN_OR_RETURN(cuda::PinnedBuffer buffer, cuda::PinnedBuffer::create(context_, bytes));
    std::fill(buffer.bytes().begin(), buffer.bytes().end(), std::byte{0});
    return std::make_unique<StagingMemory>(std::move(buffer));
  }
  std::shared_ptr<const void> pin(std::span<std::byte> memory) override {
    auto pin = cuda::HostPin::create(context_, memory);
    if (pin.ok()) return std::make_shared<const cuda::HostPin>(*std::move(pin));
    // What another has pinned is as fast.
    if (!absl::IsAlreadyExists(pin.status()) && not_pinned_ != nullptr && !told_.exchange(true))
      not_pinned_(with_context(pin.status(), str_cat(memory.size(), " bytes")));
    return nullptr;
  }
  absl::StatusOr<std::unique_ptr<Queue>> open_queue() override {
    return gpu::GpuQueue::open(context_, graphs_);
  }
  Joins joins() const override {
    return {.linear_gelu = true, .embedding_add = true, .add_layer_norm = true};
  }
  std::unique_ptr<Lowering> begin(const Schedule& schedule, Precision precision, Queue* queue) override {
    return std::make_unique<gpu::GpuLowering>(schedule, precision, products_, *kernels_,
                                              static_cast<gpu::GpuQueue&>(*queue));
  }
  absl::Status enter() override { return context_->enter(); }

 private:
  static constexpr Duration kClearLimit = std::chrono::minutes(1);

  // Memory is made by whatever thread: the stream is one thread's at a time.
  absl::Status clear(const cuda::DeviceBuffer& buffer) {
    auto stream = stream_.lock();
    PL_RETURN_IF_ERROR(stream->clear(buffer.address(), buffer.bytes()));
    return stream->finish(clock_, Deadline::after(clock_.now(), kClearLimit));
  }

  const std::shared_ptr<const cuda::Context> context_;
  const std::shared_ptr<const cuda::CublasLt> products_;
  const std::unique_ptr<const gpu::Kernels> kernels_;
  Guarded<cuda::Stream> stream_;
  const gpu::GraphUse graphs_;
  const std::function<void(const absl::Status& why)> not_pinned_;
  std::atomic<bool> told_{false};
  SystemClock clock_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Device>> open_gpu_device(const GpuOptions& options) {
  PL_ASSIGN_OR_RETURN(auto driver, cuda::Driver::open(options.driver));
  PL_ASSIGN_OR_RETURN(auto context, cuda::Context::open(std::move(driver), options.ordinal));
  PL_RETURN_IF_ERROR(context->enter());
  PL_ASSIGN_OR_RETURN(auto products, cuda::CublasLt::open(context, options.cublaslt));
  PL_ASSIGN_OR_RETURN(auto kernels, gpu::Kernels::load(context));
  PL_ASSIGN_OR_RETURN(cuda::Stream stream, cuda::Stream::create(context));
  return std::make_unique<GpuDevice>(std::move(products), std::move(kernels), std::move(stream), options);
}

}  // namespace paceline::tensor
