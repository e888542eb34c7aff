#include "runtime/tensor/cpu/cpu_device.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/status.h"
#include "runtime/tensor/cpu/aligned_buffer.h"
#include "runtime/tensor/cpu/cpu_lowering.h"
#include "runtime/tensor/device.h"

// oneDNN runs its loops by OpenMP; this is the one call of it that we need, and its header is the compiler's,
// not the library's.
extern "C" void omp_set_num_threads(int threads);

namespace paceline::tensor {

namespace {

class CpuMemory final : public DeviceMemory {
 public:
  explicit CpuMemory(std::size_t bytes) : buffer_(bytes) {}
  std::byte* data() const override { return buffer_.data(); }

 private:
  cpu::AlignedBuffer buffer_;
};

class CpuDevice final : public Device {
 public:
  explicit CpuDevice(const CpuOptions& options) : threads_(std::max(options.threads, 1)) {}

  absl::StatusOr<std::unique_ptr<DeviceMemory>> allocate(std::size_t bytes) override {
    try {
      return std::make_unique<CpuMemory>(bytes);
    } catch (const std::bad_alloc&) {
      return cpu::no_memory(bytes, "tensors");
    }
  }
  absl::StatusOr<std::unique_ptr<DeviceMemory>> allocate_staging(std::size_t bytes) override {
    return allocate(bytes);
  }
  absl::StatusOr<std::unique_ptr<Queue>> open_queue() override { return nullptr; }
  std::unique_ptr<Lowering> begin(const Schedule& schedule, Precision precision, Queue*) override {
    return std::make_unique<cpu::CpuLowering>(schedule, precision);
  }
  absl::Status enter() override {
    omp_set_num_threads(threads_);
    return absl::OkStatus();
  }

 private:
  const int threads_;
};

}  // namespace

std::unique_ptr<Device> make_cpu_device(const CpuOptions& options) {
  return std::make_unique<CpuDevice>(options);
}

}  // namespace paceline::tensor
