#pragma once

// The Program of a graph on a device (program.h). Operators are made for exact shapes, so it keeps one
// executable for each row count that it has seen: the full batch, a smaller last one, a member's uneven
// share. All of them work in one arena.

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "runtime/tensor/batch_areas.h"
#include "runtime/tensor/compiler.h"
#include "runtime/tensor/device.h"
#include "runtime/tensor/device_copies.h"
#include "runtime/tensor/executable.h"

namespace paceline::tensor {

class CompiledProgram final : public Program {
 public:
  // `device` outlives it.
  CompiledProgram(GraphBuilder graph, ParameterLayout layout, Device& device, const CompileOptions& options);

  // Once, first. The errors of compile().
  absl::Status prepare();
  // program_bytes().
  absl::StatusOr<std::size_t> bytes() const;

  const ParameterLayout& parameters() const override { return layout_; }
  std::int64_t max_rows() const override { return options_.max_rows; }
  void bind(std::span<float> weights, std::span<float> gradients) override;
  absl::Status bind_on_device(const DeviceVectors& vectors) override;
  absl::Status unbind() override;
  void initialize(std::uint64_t seed, std::span<float> weights) const override;
  void weights_changed() override { ++weights_version_; }
  BatchMemory batch() override { return batch_; }
  absl::StatusOr<ForwardResult> forward(std::int64_t rows) override;
  absl::Status backward(float scale, bool accumulate, const OnReady& on_ready) override;
  absl::Status pass(std::int64_t rows, float scale, bool accumulate, const OnResult& on_result,
                    const OnReady& on_ready) override;
  absl::Status reserve(std::int64_t rows) override;
  absl::StatusOr<MemoryUse> memory() const override;
  void observe(OperationObserver* observer) override { observer_ = observer; }

 private:
  struct Entry {
    std::int64_t rows;
    std::uint64_t used;
    std::unique_ptr<Executable> executable;
  };
  absl::StatusOr<Executable*> executable(std::int64_t rows);
  absl::StatusOr<std::unique_ptr<Executable>> make_executable(std::int64_t rows) const;
  absl::Status check_room(std::int64_t rows, std::size_t bytes) const;
  absl::Status grow_arena(std::size_t bytes);
  absl::Status take_cache(std::size_t bytes);
  void bind_entries();
  std::uint64_t weights_version() const { return on_device() ? *device_vectors_.version : weights_version_; }
  bool on_device() const { return device_vectors_.weights != nullptr; }

  // Adds a half of a pass to the queue, or does it where there is none. What comes between two points that
  // the host or another queue is to see is recorded (Queue::repeat) and added as a whole: the forward pass
  // with the batch's last step and the result's, and the backward pass, cut where ranges of the gradient are
  // told.
  absl::Status run_forward(std::int64_t rows, const RunContext& context);
  absl::Status run_backward(const RunContext& context, const OnReady& on_ready);
  // `part`: its number among those of a pass.
  absl::Status add(Executable& executable, const RunContext& context, std::size_t part,
                   absl::FunctionRef<absl::Status()> work);
  absl::Status add_backward_parts(const RunContext& context, const OnReady& on_ready);
  // Of gradients whose last operation has run, or was added to the queue.
  absl::Status publish_range(std::size_t range, const OnReady& on_ready);
  RunContext context(float scale, bool accumulate, bool whole_pass) const {
    return {weights_version(), scale, accumulate, batch_.tokens, whole_pass};
  }
  absl::Status upload_weights();
  // Whether a backward pass leaves gradients of the batch, too.
  bool leaves_gradients() const {
    return !batch_.input_gradients.empty() || !batch_.offset_gradients.empty();
  }
  // Of a queue: waits, and tells what is there.
  absl::StatusOr<ForwardResult> result();
  absl::Status publish_ranges(const OnReady& on_ready);

  const GraphBuilder graph_;
  const ParameterLayout layout_;
  Device& device_;
  const CompileOptions options_;
  LeftRoom leave_;  // options_.leave, until it is taken
  const BatchAreas areas_;

  std::shared_ptr<Queue> queue_;  // null: the device's memory is the host's
  std::unique_ptr<DeviceMemory> batch_memory_;
  BatchMemory batch_;
  std::unique_ptr<DeviceCopies> copies_;  // null: there is no queue
  std::shared_ptr<KeyValueCache> cache_;  // null: nothing needs it
  std::unique_ptr<DeviceMemory> arena_;
  std::size_t arena_bytes_ = 0;
  std::vector<Entry> entries_;
  ExternalMemory external_;
  std::array<double, 3> result_{};

  bool bound_ = false;
  DeviceVectors device_vectors_;  // nulls: the bound vectors are the host's
  Executable* last_ = nullptr;    // of the last forward; null: backward has consumed it
  std::int64_t last_rows_ = 0;
  std::uint64_t weights_version_ = 1;
  std::uint64_t uses_ = 0;
  OperationObserver* observer_ = nullptr;
};

}  // namespace paceline::tensor
